"""Tables of what one client sends and receives.

One has a row a phase and rows of sums, the other, by which claims are judged, a row a run.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import mean
from typing import Any, get_args

import pyarrow as pa

from fedstage.results.communication.runs import Reached, RunTraffic
from fedstage.results.metrics import arrow_type, spread
from fedstage.results.runs_file import SEED
from fedstage.results.tables.labels import (
    NOTHING,
    head_of,
    human_bytes,
    join_labels,
    mean_and_std,
    show_value,
)
from fedstage.results.tables.plain import Cell
from fedstage.settings.scores import Cells, Communicated, Metric

#: Rows of one place and phase, of all seeds.
Seeds = Sequence[Mapping[str, Any]]

MIB = 2**20
#: The phase in which clients fetch the ensemble.
ENSEMBLE = "ensemble"
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
        ("part", pa.int64()),  # of the run; null for a sum
        ("phase", pa.string()),
        ("rounds", pa.int64()),  # 0 for a phase outside of rounds; of a sum its last round
        ("bytes_up", pa.float64()),  # of the mean client; null for a score that is never reached
        ("bytes_down", pa.float64()),
        ("bytes", pa.float64()),
        ("times_one_shot", pa.float64()),  # of one model up and one down
        ("score", pa.float64()),  # percent, of sums
        ("memory_bytes", pa.int64()),  # that prediction needs; of the total
        ("memory_mib", pa.float64()),
        ("published_memory_mib", pa.float64()),
    ]
)

_PUBLISHED = "Published (MiB)"
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
    _PUBLISHED: "the same as {source} reports it.",
}


def traffic_rows(run: RunTraffic) -> list[dict[str, Cell]]:
    """Return the rows of a run as exact numbers, without its axes."""
    rows = [
        _row(run, phase.name, phase.rounds, phase.up, phase.down, part=phase.part)
        for phase in run.phases
    ]
    memory: dict[str, Cell] = {
        "memory_bytes": run.held,
        "memory_mib": run.held / MIB,
        "published_memory_mib": run.memory_mib,
    }
    end = replace(run.course[-1], up=run.total[0], down=run.total[1])
    rows.append(_sum(run, TOTAL, end) | memory)
    if run.best is not None:
        rows.append(_sum(run, TO_BEST, run.best))
    if run.reached is not None:
        rows.append(_sum(run, TO_REACH, run.reached))
    elif run.target is not None:
        rows.append(dict.fromkeys(_VALUES.names) | {"phase": TO_REACH})
    return rows


def _sum(run: RunTraffic, name: str, reached: Reached) -> dict[str, Cell]:
    rounds = reached.round if run.iterative else 0
    return _row(run, name, rounds, reached.up, reached.down) | {"score": reached.score}


def _row(
    run: RunTraffic, phase: str, rounds: int, up: float, down: float, part: int | None = None
) -> dict[str, Cell]:
    bytes = {"bytes_up": up, "bytes_down": down, "bytes": up + down}
    known = {"part": part, "phase": phase, "rounds": rounds, **bytes}
    return dict.fromkeys(_VALUES.names) | known | {"times_one_shot": (up + down) / run.one_shot}


def table_rows(runs: Iterable[RunTraffic], axes: Sequence[str]) -> list[dict[str, Cell]]:
    """Return the rows of all runs, each with its axes and seed."""
    return [
        {axis: run.settings[axis] for axis in (*axes, SEED)} | row
        for run in runs
        for row in traffic_rows(run)
    ]


def table_schema(rows: Sequence[Mapping[str, Cell]], axes: Sequence[str]) -> pa.Schema:
    """Return the typed columns of the table."""
    keys = [(name, arrow_type(row[name] for row in rows)) for name in (*axes, SEED)]
    return pa.schema([*keys, *_VALUES])


def shown_rows(
    rows: Sequence[Mapping[str, Any]], axes: Sequence[str], metric: Metric
) -> list[dict[str, str]]:
    """Return a row a place and phase: rounded means over seeds.

    Without a published counterpart there is no column of published memory.
    """
    cells: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        place = (*(str(row[axis]) for axis in axes), str(row["part"]), row["phase"])
        cells.setdefault(place, []).append(row)
    shown = [_shown(cell, axes, metric) for cell in cells.values()]
    if all(row[_PUBLISHED] == NOTHING for row in shown):
        for row in shown:
            del row[_PUBLISHED]
    return shown


def _shown(cell: Seeds, axes: Sequence[str], metric: Metric) -> dict[str, str]:
    scores = _known(cell, "score")
    return {axis: show_value(cell[0][axis]) for axis in axes} | {
        "Phase": _phase(cell),
        "Rounds": _rounds(cell),
        "Upload": _mean(cell, "bytes_up", _bytes),
        "Download": _mean(cell, "bytes_down", _bytes),
        "Both": _mean(cell, "bytes", _bytes),
        "Times one-shot": _mean(cell, "times_one_shot", "{:.3g}".format),
        head_of(metric): mean_and_std(mean(scores), spread(scores)) if scores else NOTHING,
        "Memory (MiB)": _mean(cell, "memory_mib", _mib),
        _PUBLISHED: _mean(cell, "published_memory_mib", _mib),
    }


def _phase(cell: Seeds) -> str:
    """Name the phase, and the number of seeds that have come to its end if not all have."""
    name = cell[0]["phase"]
    shown = _NAMES.get(name, name.replace("_", " "))
    come = len(_known(cell, "bytes"))
    return shown if come == len(cell) else f"{shown} ({come} of {len(cell)} seeds)"


def _rounds(cell: Seeds) -> str:
    """Write the number of rounds: its minimum and maximum if seeds differ."""
    lengths = [int(length) for length in _known(cell, "rounds")] or [0]
    ends = dict.fromkeys((min(lengths), max(lengths)))
    return "–".join(map(str, ends)) if max(lengths) else NOTHING


def _known(cell: Seeds, column: str) -> list[float]:
    return [row[column] for row in cell if row[column] is not None]


def _mean(cell: Seeds, column: str, show: Callable[[float], str]) -> str:
    known = _known(cell, column)
    return show(mean(known)) if known else NOTHING


def _bytes(count: float) -> str:
    return human_bytes(round(count))


def _mib(size: float) -> str:
    return f"{size:.2f}" if size >= 1 else f"{size:.2g}"


def legend(metric: Metric, source: str | None, reach: Cells | None = None) -> dict[str, str]:
    """Return the explanation of each column.

    `source` names the paper of the published memory, `reach` the cells whose accuracy others are
    to reach.
    """
    texts = dict(_LEGEND)
    for mark, value in (("{source}", source or ""), ("{reach}", _explain_reach(reach))):
        texts = {name: text.replace(mark, value).strip() for name, text in texts.items()}
    score = "at the end of a total's round, mean ± standard deviation (n−1) over seeds."
    return {**texts, head_of(metric): score}


def _explain_reach(reach: Cells | None) -> str:
    if reach is None:
        return ""
    return (
        f"{_NAMES[TO_REACH]}: until the end of the first evaluated round that is as accurate as "
        f"the end of the run with {join_labels(reach, reach.values())}, of the same seed, on the "
        "same samples."
    )


def run_rows(runs: Sequence[RunTraffic]) -> list[dict[str, Cell]]:
    """Return each run's value on every axis, and its numbers; None for a number it lacks."""
    return [{**run.settings, **_numbers(run)} for run in runs]


def run_schema(rows: Sequence[dict[str, Cell]]) -> pa.Schema:
    """Return the typed columns of these rows."""
    names = get_args(Communicated)
    axes = [(name, arrow_type(row[name] for row in rows)) for name in rows[0] if name not in names]
    return pa.schema([*axes, *((name, pa.float64()) for name in names)])


def _numbers(run: RunTraffic) -> dict[str, Cell]:
    rounds = sum(phase.rounds for phase in run.phases)
    sent = sum(phase.up for phase in run.phases if phase.rounds)
    fetched = [phase.down for phase in run.phases if phase.name == ENSEMBLE]
    moved = sum(run.total)
    to_best, to_reach = (None if one is None else one.moved for one in (run.best, run.reached))
    known: dict[Communicated, float | None] = {
        "bytes": moved,
        "times_one_shot": moved / run.one_shot,
        "bytes_to_best": to_best,
        "times_one_shot_to_best": to_best and to_best / run.one_shot,
        "bytes_to_reach": to_reach,
        "times_one_shot_to_reach": to_reach and to_reach / run.one_shot,
        "bytes_up_a_round": sent / rounds if rounds else None,
        "ensemble_bytes": sum(fetched) if fetched else None,
        "memory_bytes": float(run.held),
    }
    return {name: known[name] for name in get_args(Communicated)}
