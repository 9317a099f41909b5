"""The overlap of what methods have learnt."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import Any

import torch

from fedstage.errors import FedstageError
from fedstage.results.cells import show_point
from fedstage.results.metrics import spread
from fedstage.results.retention.runs import RunRetention, mean
from fedstage.results.runs_file import SEED
from fedstage.results.tables.columns import TextTable
from fedstage.results.tables.exact import Cell
from fedstage.results.tables.labels import METHOD, axis_label, mean_and_std, show_value
from fedstage.settings.scores import Axis

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
