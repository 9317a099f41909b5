"""The table of what methods forget: means over rounds and seeds."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import pyarrow as pa

from fedstage.results.metrics import arrow_type, spread
from fedstage.results.retention.runs import RunRetention, mean
from fedstage.results.tables.exact import Cell
from fedstage.results.tables.labels import NOTHING, mean_and_std, show_value
from fedstage.settings.scores import Axis, Retained

#: Of each measure the head of its column, the digits behind the point, and what it means.
_COLUMNS: dict[Retained, tuple[str, int, str]] = {
    "final_accuracy": ("Final accuracy (%)", 2, "of the main model on test samples."),
    "forget_score": (
        "Forget score",
        2,
        "accuracy on the current participants' samples minus that on the previous ones', in "
        "percentage points; lower is better.",
    ),
    "current": ("Current (%)", 2, "accuracy on training samples of the round's participants."),
    "previous": (
        "Previous (%)",
        2,
        "accuracy on those of the participants of the last round before that had any.",
    ),
    "lost": (
        "Lost",
        1,
        "previous samples that were right before the round and are wrong after it.",
    ),
    "gained": ("Gained", 1, "previous samples that were wrong before it and are right after it."),
    "retained": ("Retained", 1, "previous samples that are right both times."),
    "distance": (
        "Distance (%)",
        2,
        "of participants' models w from their group's W before them, ‖w − W‖ / ‖W‖; over all "
        "rounds.",
    ),
    "fluctuation": (
        "Fluctuation",
        2,
        "mean absolute change of the accuracy on test samples from round to round, in percentage "
        "points; lower is better.",
    ),
}
_SEEDS = "Seeds"

LEGEND = {
    **{head: text for head, _, text in _COLUMNS.values()},
    _SEEDS: "cells are means over seeds ± standard deviation (n−1) of each run's mean over rounds: "
    "of those from the second on, unless stated otherwise.",
}
OVERLAP_NOTES = [
    "**Overlap (%)**: of what two methods have learnt, |G ∩ G'| / |G ∪ G'|: G are the test samples "
    "about which a method's model is right after the last round and was not before the first. Mean "
    "over seeds ± standard deviation (n−1)."
]


def cells_of(
    runs: Iterable[RunRetention], axes: Sequence[str]
) -> dict[tuple[Axis, ...], list[RunRetention]]:
    """Return the runs by their values on the table's axes; runs of a cell differ in their seed."""
    cells: dict[tuple[Axis, ...], list[RunRetention]] = {}
    for run in runs:
        cells.setdefault(tuple(run.settings[axis] for axis in axes), []).append(run)
    return cells


def table_rows(runs: Iterable[RunRetention], axes: Sequence[str]) -> list[dict[str, Cell]]:
    """Return a row a cell: its axes, the mean and deviation over seeds of each measure, seeds."""
    rows = []
    for place, same in cells_of(runs, axes).items():
        row: dict[str, Cell] = dict(zip(axes, place, strict=True))
        for name in get_args(Retained):
            values = [value for run in same if (value := run.numbers[name]) is not None]
            row |= {name: mean(values), f"{name}_std": spread(values)}
        rows.append(row | {"seeds": len(same)})
    return rows


def table_schema(rows: Sequence[Mapping[str, Cell]], axes: Iterable[str]) -> pa.Schema:
    """Return the typed columns of the table, or with the axes of runs those of `run_rows`."""
    types = {axis: arrow_type(row[axis] for row in rows) for axis in axes}
    types["seeds"] = pa.int64()
    return pa.schema([(name, types.get(name, pa.float64())) for name in rows[0]])


def run_rows(runs: Iterable[RunRetention]) -> list[dict[str, Cell]]:
    """Return each run's value on every axis, its seed among them, and its measures, for claims."""
    return [{**run.settings, **run.numbers} for run in runs]


def shown_rows(rows: Iterable[Mapping[str, Any]], axes: Iterable[str]) -> list[dict[str, str]]:
    """Return the rows of the table as texts."""
    axes = list(axes)
    return [
        {axis: show_value(row[axis]) for axis in axes}
        | {head: _shown(row, name, digits) for name, (head, digits, _) in _COLUMNS.items()}
        | {_SEEDS: str(row["seeds"])}
        for row in rows
    ]


def _shown(row: Mapping[str, Any], name: str, digits: int) -> str:
    value = row[name]
    if value is None:
        return NOTHING
    return mean_and_std(value, row[f"{name}_std"], digits).replace("-", "−")
