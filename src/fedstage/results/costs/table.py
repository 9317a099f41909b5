"""The table of the score of each method and its costs, one row per method."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from fedstage.results.intervals import interval_of_differences
from fedstage.results.runs_file import SEED
from fedstage.results.tables.columns import (
    Column,
    Row,
    TextTable,
    average,
    by_cell,
    known,
    text_table,
)
from fedstage.results.tables.labels import (
    NOTHING,
    PRIVACY_LEGEND,
    head_of,
    human_bytes,
    show_guarantee,
    show_value,
    signed_interval,
)
from fedstage.settings.scores import Metric

_MIB = 2**20


def _seconds(value: float) -> str:
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def _with_interval(differences: Sequence[float]) -> str:
    """Write the mean of differences, and its 95 % interval where it has one."""
    found = interval_of_differences(differences)
    return signed_interval(found.mean, found.low, found.high)


#: The score of a run in percent, and its costs: bytes that the mean client sends and receives,
#: seconds of all clients (one after the other) and of the server until training ends, and bytes
#: that prediction needs. The difference to the first method is for people only.
COLUMNS = (
    Column("score", "Score", "after training, mean ± standard deviation (n−1) over seeds."),
    Column("difference", "Beside the first",  # prose: ok
        "the difference to the first row of its column, paired over seeds, with the 95 % "
        "interval of each comparison by itself (Student's t); none of a single seed, or of up "
        "to four that all differ by the same.", _with_interval),
    Column("bytes", "Bytes",
        "that the mean client sends and receives until training ends (1 kB = 1000 B).",
        average(lambda count: human_bytes(round(count)))),
    Column("clients_s", "Clients (s)",
        "seconds of computing of all clients, one after the other, without evaluation; mean "
        "over seeds. What several methods share counts in full for each.", average(_seconds)),
    Column("server_s", "Server (s)",
        "the same of the server: aggregation, logits, students, generated images.",
        average(_seconds)),
    Column("memory_bytes", "Memory (MiB)", "of all that must be held to predict (1 MiB = 2^20 B).",
        average(lambda size: f"{size / _MIB:.2f}")),
)  # fmt: skip

#: Further columns of files if any run has privacy, and their form for people.
PRIVATE = (Column("epsilon"), Column("example_epsilon"), Column("delta"))
_GUARANTEE = Column("guarantee", "ε", PRIVACY_LEGEND,
    lambda runs: show_guarantee(max(runs, key=_epsilon)) if runs else NOTHING)  # fmt: skip


def shown_costs(
    runs: Iterable[Row], rows: Sequence[str], columns: Sequence[str], metric: Metric
) -> TextTable:
    """Return a line for each method and each value of `columns`; each value is a block of lines.

    `runs` have a run's labelled settings and its costs. Each method is compared with the first of
    its block, paired over the seeds that both have.
    """
    axes = (*columns, *rows)
    first: dict[tuple[object, ...], Sequence[Row]] = {}
    blocks: dict[tuple[object, ...], list[tuple[list[str], Row]]] = {}
    for place, same in by_cell(runs, axes).items():
        block = place[: len(columns)]
        differences = _differences(same, first.setdefault(block, same))
        cells = known(same, COLUMNS) | {"difference": differences}
        cells["guarantee"] = [run for run in same if run.get("delta") is not None]
        blocks.setdefault(block, []).append(([*map(show_value, place)], cells))
    score, *others = COLUMNS
    if any(cells["guarantee"] for lines in blocks.values() for _, cells in lines):
        others.insert(1, _GUARANTEE)
    return text_table(
        axes,
        [line for lines in blocks.values() for line in lines],
        [replace(score, head=head_of(metric)), *others],
    )


def _epsilon(run: Row) -> float:
    """Return the epsilon of a run, of clients or of samples."""
    found = [run.get(name) for name in ("epsilon", "example_epsilon")]
    return max(float(value) for value in found if value is not None)


def _differences(same: Sequence[Row], first: Sequence[Row]) -> list[float]:
    if same is first:
        return []
    scores = {run[SEED]: run["score"] for run in first}
    return [run["score"] - scores[run[SEED]] for run in same if run[SEED] in scores]
