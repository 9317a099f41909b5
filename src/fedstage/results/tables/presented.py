"""The table of an experiment for people: labels, notes, and a sentence about its numbers."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from fedstage.results.runs_file import ExperimentRuns
from fedstage.results.tables.dropped import note_dropped
from fedstage.results.tables.labels import for_people, frame_for_people
from fedstage.results.tables.layout import BY_SEED, FEDERATED, Layout, describe_source, lay_out
from fedstage.results.tables.marks import marked
from fedstage.results.tables.runs import last_rounds
from fedstage.results.tables.summary import values_by_seed


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
