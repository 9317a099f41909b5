"""Updates that were dropped because training diverged (`on_divergence: drop`): a table's note."""

from collections.abc import Sequence

import pyarrow as pa

from fedstage.results.runs_file import ExperimentRun, ExperimentRuns
from fedstage.results.tables.labels import join_for_people
from fedstage.storage.tables import load_table

#: Columns of a table any of whose updates was dropped: these, and all updates of a row's runs.
DROPPED = pa.schema([pa.field("dropped", pa.int64()), pa.field("updates", pa.int64())])


def count_dropped(experiment: ExperimentRuns) -> list[tuple[int, int]]:
    """Return, for each place, how many updates of its runs were dropped, and of how many."""
    counts = [[_count(run) for run in runs] for runs in experiment.places().values()]
    return [
        (sum(dropped for dropped, _ in pairs), sum(every for _, every in pairs)) for pairs in counts
    ]


def note_dropped(experiment: ExperimentRuns, counts: Sequence[tuple[int, int]]) -> list[str]:
    """Return a line about the places with dropped updates, if there are any."""
    places = [
        f"{dropped} of {updates} ({join_for_people(experiment.axes, runs[0].settings, experiment)})"
        for (dropped, updates), runs in zip(counts, experiment.places().values(), strict=True)
        if dropped
    ]
    about = "updates left out because training diverged, in all rounds and seeds"
    return [f"**Dropped**: {about}: {'; '.join(places)}."] if places else []


def _count(run: ExperimentRun) -> tuple[int, int]:
    tables = run.candidates[run.which()].participants
    dropped = [
        was for path in tables for was in load_table(path, ["dropped"])["dropped"].to_pylist()
    ]
    return sum(dropped), len(dropped)
