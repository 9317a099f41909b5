"""What methods forget, by run, and its table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, get_args

import pyarrow as pa
import torch

from fedstage.algorithm.measures.forgetting import RETENTION_SCHEMA
from fedstage.algorithm.measures.metrics import spread
from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import SEED, ExperimentRun
from fedstage.results.tables.columns import (
    Cell,
    Column,
    Row,
    TextTable,
    averaged,
    by_cell,
    known,
    text_table,
    with_deviation,
)
from fedstage.results.tables.labels import METHOD, axis_label, mean_and_std, show_value
from fedstage.settings.cells import show_point
from fedstage.settings.scores import Axis, Retained
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import load_tensors


@dataclass(frozen=True)
class RunRetention:
    """The measures of a run.

    `rounds` are rows of `RETENTION_SCHEMA`, in order. `learnt` is the paper's G, bool [n]: whether
    the model is right about a test sample after the last round and was not before the first.
    """

    settings: Mapping[str, Axis]  # its value on every axis
    rounds: list[dict[str, Any]]
    learnt: torch.Tensor

    @property
    def numbers(self) -> dict[str, float | None]:
        """The final accuracy, and means over rounds; None for what no round has."""
        accuracies = [float(row["top1_accuracy"]) for row in self.rounds]
        known = {
            "final_accuracy": accuracies[-1],
            "fluctuation": mean(abs(after - before) for before, after in pairwise(accuracies)),
        }
        # Means over the same rounds, so that the score is the difference of the accuracies.
        later = [row for row in self.rounds if row["forget_score"] is not None]
        return {name: mean(row.get(name) for row in later) for name in get_args(Retained)} | known


def read_retention(run: ExperimentRun) -> RunRetention:
    """Read the measures of a run, or of its chosen candidate if it has several.

    Raises
    ------
    FedstageError
        If a file is missing or damaged, or if the experiment does not measure forgetting.
    """
    if run.retention is None:
        raise FedstageError(
            f"{show_point(run.settings)}: retention = null: what it forgets is not measured; add "
            "retention to the experiment's results"
        )
    path = run.retention[run.which()]
    rows = load_table(path, RETENTION_SCHEMA.names).to_pylist()
    right = load_tensors(Path(path).with_suffix(".safetensors"))[0]
    learnt = right["end"] & ~right["start"]
    return RunRetention(run.settings, sorted(rows, key=lambda row: row["round"]), learnt)


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the known values, None if there are none."""
    known = [float(value) for value in values if value is not None]
    return fmean(known) if known else None


# --- overlaps of what is lost and gained ----------------------------------------------------------

OTHER, OVERLAP = "other_method", "overlap"
_MEASURED = (OVERLAP, f"{OVERLAP}_std", "seeds")
_NOTE = (
    "**Overlap (%)**: of what two methods have learnt, |G ∩ G'| / |G ∪ G'|: G are the test samples "
    "about which a method's model is right after the last round and was not before the first. Mean "
    "over seeds ± standard deviation (n−1)."
)
#: Runs of one seed and cell, by method.
Methods = Mapping[Axis, RunRetention]


def overlap_rows(runs: Sequence[RunRetention], axes: Sequence[str]) -> list[dict[str, Cell]]:
    """Return one row per pair of methods and cell: the mean overlap over seeds, and its deviation.

    Methods are compared where they agree on the seed and on all other axes. Pairs without any new
    knowledge in any seed have no row.

    Raises
    ------
    FedstageError
        If two methods are tested on different numbers of samples.
    """
    found: dict[tuple[Axis, ...], list[float]] = {}
    for place, methods in _by_place(runs, axes).items():
        for method, other in combinations(methods, 2):
            _check_samples(methods[method], methods[other])
            value = overlap(methods[method].learnt, methods[other].learnt)
            if value is not None:
                found.setdefault((*place[:-1], method, other), []).append(value)
    columns = overlap_columns(axes)
    return [
        dict(zip(columns, (*key, fmean(values), spread(values), len(values)), strict=True))
        for key, values in found.items()
    ]


def mean_overlaps(runs: Sequence[RunRetention], axes: Sequence[str]) -> list[float | None]:
    """Return each run's mean overlap with the other methods of its seed and cell, in percent.

    It is None if there is no other method, or if neither the run nor any of them has learnt
    anything.
    """
    beside = _by_place(runs, axes)
    return [
        mean(
            overlap(run.learnt, other.learnt)
            for other in beside[_place(run, axes)].values()
            if other is not run
        )
        for run in runs
    ]


def overlap_columns(axes: Sequence[str]) -> list[str]:
    """Return the columns of these rows."""
    rest = [axis for axis in axes if axis != METHOD]
    return [*rest, METHOD, OTHER, *_MEASURED]


def shown_overlaps(
    rows: Sequence[dict[str, Any]], axes: Sequence[str], labels: Mapping[str, str]
) -> TextTable:
    """Return the rows as texts for people, methods by their labels."""
    keys = [name for name in overlap_columns(axes) if name not in _MEASURED]
    lines = []
    for row in rows:
        methods = {name: labels.get(str(row[name]), row[name]) for name in (METHOD, OTHER)}
        value = mean_and_std(row[OVERLAP], row[f"{OVERLAP}_std"])
        shown = [show_value((row | methods)[name]) for name in keys]
        lines.append([*shown, value, str(row["seeds"])])
    heads = [*map(axis_label, keys), "Overlap (%)", "Seeds"]
    return TextTable(heads, lines, len(keys), [_NOTE])


def _by_place(runs: Iterable[RunRetention], axes: Sequence[str]) -> dict[tuple[Axis, ...], Methods]:
    """Return the methods of each seed and cell."""
    places: dict[tuple[Axis, ...], dict[Axis, RunRetention]] = {}
    for run in runs:
        places.setdefault(_place(run, axes), {})[run.settings[METHOD]] = run
    return dict(places)


def _place(run: RunRetention, axes: Sequence[str]) -> tuple[Axis, ...]:
    """Return a run's values on all axes but the method, and its seed."""
    return tuple(run.settings[axis] for axis in (*axes, SEED) if axis != METHOD)


def overlap(learnt: torch.Tensor, other: torch.Tensor) -> float | None:
    """Return |G & G'| / |G | G'| in percent for what two methods have learnt, bool [n].

    None if neither has learnt anything.
    """
    union = int((learnt | other).sum())
    return 100 * int((learnt & other).sum()) / union if union else None


def _check_samples(run: RunRetention, other: RunRetention) -> None:
    if len(run.learnt) != len(other.learnt):
        raise FedstageError(
            f"{show_point(run.settings)} and {show_point(other.settings)}: {len(run.learnt)} and "
            f"{len(other.learnt)} test samples: must be the same samples"
        )


# --- the table ------------------------------------------------------------------------------------

#: Measures of a run, which is what `RunRetention.numbers` has.
MEASURES = (
    Column("final_accuracy", "Final accuracy (%)", "of the main model on test samples."),
    Column("forget_score", "Forget score",
        "accuracy on the current participants' samples minus that on the previous ones', in "
        "percentage points; lower is better."),
    Column("current", "Current (%)", "accuracy on training samples of the round's participants."),
    Column("previous", "Previous (%)",
        "accuracy on those of the participants of the last "  # prose: ok
        "round before that had any."),
    Column("lost", "Lost",
        "previous samples that were right before the round and are wrong after it.",
        with_deviation(1)),
    Column("gained", "Gained", "previous samples that were wrong before it and are right after it.",
        with_deviation(1)),
    Column("retained", "Retained", "previous samples that are right both times.",
        with_deviation(1)),
    Column("distance", "Distance (%)",
        "of participants' models w from their group's W before them, ‖w − W‖ / ‖W‖."),
    Column("fluctuation", "Fluctuation",
        "mean absolute change of the accuracy on test samples from round to round, in percentage "
        "points; lower is better."),
)  # fmt: skip
#: The columns for claims: a run's measures, and the overlap of its method with the others.
BY_RUN = (*MEASURES, Column(OVERLAP))
SEEDS = Column(
    "seeds",
    "Seeds",
    "cells are means over seeds ± standard deviation (n−1) of each run's mean over rounds: of "
    "those from the second on, unless stated otherwise.",
    str,
    pa.int64(),
)
#: The columns of files behind the axes.
COLUMNS = (*MEASURES, *(Column(f"{column.name}_std") for column in MEASURES), SEEDS)


def run_rows(runs: Iterable[RunRetention]) -> list[dict[str, Cell]]:
    """Return each run's value on every axis, including the seed, and its measures, for claims."""
    return [{**run.settings, **run.numbers} for run in runs]


def table_rows(runs: Iterable[RunRetention], axes: Sequence[str]) -> list[dict[str, Cell]]:
    """Return one row per cell: axes, mean and deviation over seeds of each measure, and seeds."""
    cells = by_cell(run_rows(runs), axes).items()
    return [dict(zip(axes, place, strict=True)) | averaged(same, MEASURES) for place, same in cells]


def shown_retention(runs: Iterable[RunRetention], axes: Sequence[str]) -> TextTable:
    """Return the table for people."""
    lines: list[tuple[Sequence[str], Row]] = [
        ([*map(show_value, place)], known(same, MEASURES) | {"seeds": len(same)})
        for place, same in by_cell(run_rows(runs), axes).items()
    ]
    return text_table(axes, lines, [*MEASURES, SEEDS])
