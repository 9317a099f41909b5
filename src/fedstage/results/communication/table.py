"""The table of what one client sends and receives: a row a phase, and rows of sums."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from statistics import mean
from typing import Any

import pyarrow as pa

from fedstage.results.communication.runs import Reached, RunTraffic
from fedstage.results.tables.labels import NOTHING, head_of, human_bytes, show_value
from fedstage.results.tables.plain import Cell, arrow_type, with_deviation
from fedstage.results.tables.runs import SEED
from fedstage.settings.scores import Cells as CellsOfTable
from fedstage.settings.scores import Metric

#: Rows of one place and phase, of all seeds.
Cells = Sequence[Mapping[str, Any]]

MIB = 2**20
#: Rows of sums: until training ends, until the round that is best on validation samples, and until
#: the first that is as accurate as another run.
TOTAL, TO_BEST, TO_REACH = "total", "total_to_best", "total_to_reach"
_NAMES = {
    "round": "aggregator round",
    TOTAL: "**total**",
    TO_BEST: "**total to the best round**",
    TO_REACH: "**total to the same accuracy**",
}
#: The columns behind the axes and the seed.
_VALUES = pa.schema(
    [
        ("part", pa.int64()),  # which of the runs that go on from one another; null for a sum
        ("phase", pa.string()),
        ("rounds", pa.int64()),  # 0 for what happens once; of a sum the round that it goes to
        ("bytes_up", pa.float64()),  # of the mean client, until the phase ends; null for what never
        ("bytes_down", pa.float64()),  # comes
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
        "is best on the clients' validation samples. {reach}"
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
    if run.reached is not None:
        rows.append(_sum(run, TO_REACH, run.reached))
    elif run.target is not None:
        rows.append(dict.fromkeys(_VALUES.names) | {"phase": TO_REACH})
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
        "Phase": _phase(cell),
        "Rounds": _rounds(cell),
        "Upload": _bytes(cell, "bytes_up"),
        "Download": _bytes(cell, "bytes_down"),
        "Both": _bytes(cell, "bytes"),
        "Times one-shot": _times(cell),
        head_of(metric): _score(cell),
        "Memory (MiB)": _mib(cell, "memory_mib"),
        "Published (MiB)": _mib(cell, "published_memory_mib"),
    }


def _phase(cell: Cells) -> str:
    """Name the phase, and how many seeds have come to its end where not all have."""
    name = cell[0]["phase"]
    shown = _NAMES.get(name, name.replace("_", " "))
    come = len(_known(cell, "bytes"))
    return shown if come == len(cell) else f"{shown} ({come} of {len(cell)} seeds)"


def _rounds(cell: Cells) -> str:
    """Write how many rounds there are, of seeds that differ the least and the most."""
    lengths = [int(length) for length in _known(cell, "rounds")] or [0]
    ends = dict.fromkeys((min(lengths), max(lengths)))
    return "–".join(map(str, ends)) if max(lengths) else NOTHING


def _known(cell: Cells, column: str) -> list[float]:
    return [row[column] for row in cell if row[column] is not None]


def _bytes(cell: Cells, column: str) -> str:
    known = _known(cell, column)
    return human_bytes(round(mean(known))) if known else NOTHING


def _times(cell: Cells) -> str:
    known = _known(cell, "times_one_shot")
    return f"{mean(known):.3g}" if known else NOTHING


def _score(cell: Cells) -> str:
    scores = _known(cell, "score")
    return with_deviation(scores, 2) if scores else NOTHING


def _mib(cell: Cells, column: str) -> str:
    known = _known(cell, column)
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


def legend(metric: Metric, source: str | None, reach: CellsOfTable | None = None) -> dict[str, str]:
    """Return what each column says; `reach` are the cells whose accuracy others are to reach."""
    known = {"{source}": source or "", "{reach}": _told(reach)}
    texts = dict(_LEGEND)
    for mark, told in known.items():
        texts = {name: text.replace(mark, told).strip() for name, text in texts.items()}
    score = "at the end of a total's round, mean ± standard deviation (n−1) over seeds."
    return {**texts, head_of(metric): score}


def _told(reach: CellsOfTable | None) -> str:
    if reach is None:
        return ""
    cells = ", ".join(f"{axis} = {show_value(value)}" for axis, value in reach.items())
    return (
        f"{_NAMES[TO_REACH]}: until the end of the first evaluated round that is as accurate as "
        f"the end of the run with {cells}, of the same seed, on the same samples."
    )
