"""The table of what one client sends and receives: a row a phase, and rows of sums."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from statistics import mean
from typing import Any

import pyarrow as pa

from fedstage.communication.runs import Reached, RunTraffic
from fedstage.config import Metric
from fedstage.tables.labels import NOTHING, head_of, human_bytes, show_value
from fedstage.tables.plain import Cell, arrow_type, with_deviation
from fedstage.tables.runs import SEED

#: Rows of one place and phase, of all seeds.
Cells = Sequence[Mapping[str, Any]]

MIB = 2**20
#: Rows of sums: until training ends, and until the round that is best on validation samples.
TOTAL, TO_BEST = "total", "total_to_best"
_NAMES = {"round": "aggregator round", TOTAL: "**total**", TO_BEST: "**total to the best round**"}
#: The columns behind the axes and the seed.
_VALUES = pa.schema(
    [
        ("part", pa.int64()),  # which of the runs that go on from one another; null for a sum
        ("phase", pa.string()),
        ("rounds", pa.int64()),  # 0 for what happens once; of a sum the round that it goes to
        ("bytes_up", pa.float64()),  # of the mean client, until the phase ends
        ("bytes_down", pa.float64()),
        ("bytes", pa.float64()),
        ("times_one_shot", pa.float64()),  # of one model up and one down
        ("score", pa.float64()),  # percent, of sums
        ("memory_bytes", pa.int64()),  # of what predicts; of the total
        ("memory_mib", pa.float64()),
        ("published_memory_mib", pa.float64()),
    ]
)

_LEGEND = {
    "Phase": (
        "what travels, `federated round` in all rounds of a federated method together. "
        f"{_NAMES[TOTAL]}: until training ends. {_NAMES[TO_BEST]}: until the end of the round that "
        "is best on the clients' validation samples."
    ),
    "Rounds": f"of the phase, {NOTHING} for what happens once; of a total the last round of all.",
    "Upload": "bytes that the mean client sends: all participants' over the number of clients.",
    "Download": "bytes that it receives (1 kB = 1000 B).",
    "Both": "their sum.",
    "Times one-shot": "that sum over one model of a client up and one down.",
    "Memory (MiB)": "of all that must be held to predict: models, aggregator (1 MiB = 2^20 B).",
    "Published (MiB)": "the same as {source} reports it.",
}


def traffic_rows(run: RunTraffic) -> list[dict[str, Cell]]:
    """Return the rows of a run, without its axes, as exact numbers."""
    rows = [
        _row(run, phase.name, phase.rounds, phase.up, phase.down, part=phase.part)
        for phase in run.phases
    ]
    memory: dict[str, Cell] = {
        "memory_bytes": run.held,
        "memory_mib": run.held / MIB,
        "published_memory_mib": run.memory_mib,
    }
    rows.append(_sum(run, TOTAL, run.course[-1]) | memory)
    if run.best is not None:
        rows.append(_sum(run, TO_BEST, run.best))
    return rows


def _sum(run: RunTraffic, name: str, reached: Reached) -> dict[str, Cell]:
    up, down = run.total if name == TOTAL else (reached.up, reached.down)
    rounds = reached.round if run.iterative else 0
    return _row(run, name, rounds, up, down) | {"score": reached.score}


def _row(
    run: RunTraffic, phase: str, rounds: int, up: float, down: float, part: int | None = None
) -> dict[str, Cell]:
    known: dict[str, Cell] = {
        "part": part,
        "phase": phase,
        "rounds": rounds,
        "bytes_up": up,
        "bytes_down": down,
        "bytes": up + down,
        "times_one_shot": (up + down) / run.one_shot,
    }
    return {name: known.get(name) for name in _VALUES.names}


def table_rows(runs: Iterable[RunTraffic], axes: Sequence[str]) -> list[dict[str, Cell]]:
    """Return the rows of all runs, each with its axes and seed."""
    return [
        {axis: run.settings[axis] for axis in (*axes, SEED)} | row
        for run in runs
        for row in traffic_rows(run)
    ]


def table_schema(rows: Sequence[Mapping[str, Cell]], axes: Sequence[str]) -> pa.Schema:
    """Return the columns of the table, typed."""
    keys = [(name, arrow_type(row[name] for row in rows)) for name in (*axes, SEED)]
    return pa.schema([*keys, *_VALUES])


# --- for people -----------------------------------------------------------------------------------


def shown_rows(
    rows: Sequence[Mapping[str, Any]], axes: Sequence[str], metric: Metric
) -> list[dict[str, str]]:
    """Return a row a place and phase: means over seeds, rounded."""

    def place(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return (*(str(row[axis]) for axis in axes), str(row["part"]), row["phase"])

    order = {key: number for number, key in enumerate(dict.fromkeys(map(place, rows)))}
    grouped = groupby(sorted(rows, key=lambda row: order[place(row)]), key=place)
    return _without_empty([_shown(list(cell), axes, metric) for _, cell in grouped])


def _shown(cell: Cells, axes: Sequence[str], metric: Metric) -> dict[str, str]:
    first = cell[0]
    return {axis: show_value(first[axis]) for axis in axes} | {
        "Phase": _NAMES.get(first["phase"], first["phase"].replace("_", " ")),
        "Rounds": _rounds(cell),
        "Upload": human_bytes(_mean(cell, "bytes_up")),
        "Download": human_bytes(_mean(cell, "bytes_down")),
        "Both": human_bytes(_mean(cell, "bytes")),
        "Times one-shot": f"{mean(row['times_one_shot'] for row in cell):.3g}",
        head_of(metric): _score(cell),
        "Memory (MiB)": _mib(cell, "memory_mib"),
        "Published (MiB)": _mib(cell, "published_memory_mib"),
    }


def _rounds(cell: Cells) -> str:
    """Write how many rounds there are, of seeds that differ the least and the most."""
    lengths = [int(row["rounds"]) for row in cell]
    ends = dict.fromkeys((min(lengths), max(lengths)))
    return "–".join(map(str, ends)) if max(lengths) else NOTHING


def _mean(cell: Cells, column: str) -> int:
    return round(mean(float(row[column]) for row in cell))


def _score(cell: Cells) -> str:
    scores = [row["score"] for row in cell if row["score"] is not None]
    return with_deviation(scores, 2) if scores else NOTHING


def _mib(cell: Cells, column: str) -> str:
    known = [row[column] for row in cell if row[column] is not None]
    if not known:
        return NOTHING
    size = mean(known)
    return f"{size:.2f}" if size >= 1 else f"{size:.2g}"


def _without_empty(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Drop the published column where the experiment has no counterpart."""
    column = "Published (MiB)"
    if any(row[column] != NOTHING for row in rows):
        return rows
    return [{name: text for name, text in row.items() if name != column} for row in rows]


def legend(metric: Metric, source: str | None) -> dict[str, str]:
    """Return what each column says."""
    texts = {name: text.replace("{source}", source or "") for name, text in _LEGEND.items()}
    score = "at the end of a total's round, mean ± standard deviation (n−1) over seeds."
    return {**texts, head_of(metric): score}
