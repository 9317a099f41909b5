"""The table of an experiment for people: labels, notes, marks, and a sentence about its numbers.

Each column is ranked by itself, within a block: the lines that share all row axes but the last,
such as the methods of one model. The best federated method is marked, and a star marks methods that
do not differ from it by the test of `fedstage compare`: paired over seeds, with Holm's correction
over the comparisons of the column.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import isnan
from typing import Any

import pandas as pd

from fedstage.experiments.runs_file import ExperimentRuns
from fedstage.results.intervals import LEVEL, holm, p_of_differences, paired
from fedstage.results.tables.labels import for_people, frame_for_people, join_for_people
from fedstage.results.tables.layout import (
    BY_SEED,
    FEDERATED,
    Layout,
    Mark,
    TextColumn,
    describe_source,
    lay_out,
)
from fedstage.results.tables.measured import DROPPED
from fedstage.results.tables.runs import last_rounds
from fedstage.results.tables.summary import values_by_seed

_NOTE = (
    "**Bold**: the highest mean of a federated method in its column and block; those trained on "
    "pooled data, or by each client alone, are not ranked. "
)
_TESTED = (
    "A star: not distinguished from it by the paired t-test over seeds (p > 0.05, with Holm's "
    "correction over the comparisons in the column); published numbers are not tested."
)
_UNTESTED = "With a single seed no test tells others apart from it."


def present(
    experiment: ExperimentRuns,
    frame: pd.DataFrame,
    table: pd.DataFrame,
    counts: Sequence[tuple[int, int]],
) -> tuple[Layout, str]:
    """Return the layout of an experiment's table, and a sentence about its numbers.

    `frame` has the runs, as `read_scores` returns them, `table` is the result of `summarise`, and
    `counts` is the result of `count_dropped`.
    """
    people, shown = for_people(experiment), frame_for_people(table, experiment)
    measured = values_by_seed(frame, experiment.axes, experiment.metric)
    ranking: dict[str, Any] = {FEDERATED: experiment.federated(), BY_SEED: measured}
    shown = shown.assign(**ranking)
    notes = [*note_dropped(experiment, counts), *experiment.notes]
    layout = marked(lay_out(shown, people.rows, people.columns, experiment.published, notes))
    last = last_rounds(frame)
    return layout, describe_source(experiment.experiment, experiment.scale, last, experiment.metric)


def count_dropped(experiment: ExperimentRuns, frame: pd.DataFrame) -> list[tuple[int, int]]:
    """Return, for each place, the number of dropped updates of its runs, and of all updates.

    `frame` has the runs, as `fedstage.results.tables.runs.read_runs` returns them.
    """
    if not set(DROPPED.names) <= set(frame):
        return [(0, 0)] * len(experiment.places())
    # As in the table: a place is a group of runs, in the order of their first run.
    places = frame.groupby(experiment.axes, sort=False, dropna=False)
    return [(int(cell["dropped"].sum()), int(cell["updates"].sum())) for _, cell in places]


def note_dropped(experiment: ExperimentRuns, counts: Sequence[tuple[int, int]]) -> list[str]:
    """Return a line about the places with dropped updates, if there are any."""
    places = [
        f"{dropped} of {updates} ({join_for_people(experiment.axes, runs[0].settings, experiment)})"
        for (dropped, updates), runs in zip(counts, experiment.places().values(), strict=True)
        if dropped
    ]
    about = "updates left out because training diverged, in all rounds and seeds"
    return [f"**Dropped**: {about}: {'; '.join(places)}."] if places else []


def marked(layout: Layout) -> Layout:
    """Return a table with marks on its cells, and a line of the legend about their meaning."""
    blocks = layout.blocks()
    columns = [replace(column, marks=_marks(column, blocks)) for column in layout.columns]
    means = [mean for column in layout.columns for mean in column.means if not isnan(mean.value)]
    tested = any(len(mean.by_seed) > 1 for mean in means)
    notes = [_NOTE + (_TESTED if tested else _UNTESTED)] if means else []
    return replace(layout, columns=columns, legend=[*layout.legend, *notes])


def _marks(column: TextColumn, blocks: Sequence[Sequence[int]]) -> list[Mark]:
    marks: list[Mark] = [""] * len(column.texts)
    others: dict[int, list[float]] = {}
    for block in blocks if column.means else []:
        means = {place: column.means[place] for place in block}
        ranked = {place: mean for place, mean in means.items() if not isnan(mean.value)}
        if len({mean.value for mean in ranked.values()}) < 2:
            continue
        best = max(ranked.values(), key=lambda mean: mean.value)
        for place, mean in ranked.items():
            if mean.value == best.value:
                marks[place] = "best"
            else:
                others[place] = paired(best.by_seed, mean.by_seed)
    p_values = holm([p_of_differences(differences) for differences in others.values()])
    for (place, differences), p_value in zip(others.items(), p_values, strict=True):
        if len(differences) > 1 and p_value > LEVEL:
            marks[place] = "star"
    return marks
