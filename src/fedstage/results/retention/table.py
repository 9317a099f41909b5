"""The table of what methods forget: means over rounds and seeds."""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from fedstage.results.retention.overlaps import OVERLAP
from fedstage.results.retention.runs import RunRetention
from fedstage.results.tables.columns import (
    Column,
    Row,
    TextTable,
    averaged,
    by_cell,
    known,
    text_table,
    with_deviation,
)
from fedstage.results.tables.exact import Cell
from fedstage.results.tables.labels import show_value

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
        "of participants' models w from their group's W before them, ‖w − W‖ / ‖W‖; over all "
        "rounds."),
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
