"""A table's note on updates that were dropped as diverged (`on_divergence: drop`)."""

from collections.abc import Sequence

import pandas as pd

from fedstage.results.runs_file import ExperimentRuns
from fedstage.results.tables.labels import join_for_people
from fedstage.results.tables.measured import DROPPED


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
