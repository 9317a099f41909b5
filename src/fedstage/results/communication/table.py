"""Tables of what one client sends and receives.

One has a row a phase and rows of sums, the other, by which claims are judged, a row a run.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import mean
from typing import Any, get_args

import pyarrow as pa

from fedstage.results.communication.goals import by_value
from fedstage.results.communication.phases import Moved
from fedstage.results.communication.runs import BYTES, Reached, RunTraffic
from fedstage.results.metrics import arrow_type, spread
from fedstage.results.runs_file import SEED
from fedstage.results.tables.exact import Cell
from fedstage.results.tables.labels import (
    METRICS,
    NOTHING,
    head_of,
    human_bytes,
    human_count,
    join_labels,
    mean_and_std,
    show_value,
)
from fedstage.settings.experiments import is_fixed
from fedstage.settings.scores import Communicated, Metric, Reach

#: Rows of one place and phase, of all seeds.
Seeds = Sequence[Mapping[str, Any]]

MIB = 2**20
#: The phase in which clients fetch the ensemble.
ENSEMBLE = "ensemble"
#: Rows of sums: until training ends, until the round that is best on validation samples, and until
#: the first that has reached its goal.
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
        ("params", pa.float64()),  # of all participants both ways: their bytes in 32-bit numbers
        ("score", pa.float64()),  # percent, of sums
        ("target", pa.float64()),  # percent, of the sum until it is reached
        ("memory_bytes", pa.int64()),  # that prediction needs; of the total
        ("memory_mib", pa.float64()),
        ("published_memory_mib", pa.float64()),
        ("published_params", pa.float64()),  # of the sum until a target is reached
    ]
)

#: The name of the last sum where the accuracy is fixed.
_TO_FIXED = "**total to the accuracy**"
_PUBLISHED = "Published (MiB)"
_PARAMS = "Parameters"
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
    _PARAMS: (
        "numbers of 32 bits that all participants together send and receive, their bytes / 4: "
        "weights and whatever goes with them. Compressed messages count by their bytes too."
    ),
    "Times one-shot": "that sum over one model of a client up and one down.",
    "Memory (MiB)": "of all that must be held to predict: models, aggregator (1 MiB = 2^20 B).",
    _PUBLISHED: "the same as {source} reports it.",
}


def traffic_rows(run: RunTraffic) -> list[dict[str, Cell]]:
    """Return the rows of a run as exact numbers, without its axes."""
    rows = [
        _row(run, phase.name, phase.rounds, Moved(phase.up, phase.down, phase.everyone))
        | {"part": phase.part}
        for phase in run.phases
    ]
    memory: dict[str, Cell] = {
        "memory_bytes": run.held,
        "memory_mib": run.held / MIB,
        "published_memory_mib": run.memory_mib,
    }
    end = replace(run.course[-1], **run.total._asdict())
    rows.append(_sum(run, TOTAL, end) | memory)
    if run.best is not None:
        rows.append(_sum(run, TO_BEST, run.best))
    if run.target is not None:
        rows.append(_to_reach(run) | {"published_params": run.published_params})
    return rows


def _to_reach(run: RunTraffic) -> dict[str, Cell]:
    """Return the sum until the target, which is empty where no evaluated round reaches it."""
    known = {} if run.reached is None else _sum(run, TO_REACH, run.reached)
    return dict.fromkeys(_VALUES.names) | known | {"phase": TO_REACH, "target": run.target}


def _sum(run: RunTraffic, name: str, reached: Reached) -> dict[str, Cell]:
    rounds = reached.round if run.iterative else 0
    moved = Moved(reached.up, reached.down, reached.everyone)
    return _row(run, name, rounds, moved) | {"score": reached.score}


def _row(run: RunTraffic, phase: str, rounds: int, moved: Moved) -> dict[str, Cell]:
    both = moved.up + moved.down
    known: dict[str, Cell] = {
        "phase": phase,
        "rounds": rounds,
        "bytes_up": moved.up,
        "bytes_down": moved.down,
        "bytes": both,
        "times_one_shot": both / run.one_shot,
        "params": moved.everyone / BYTES,
    }
    return dict.fromkeys(_VALUES.names) | known


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
    rows: Sequence[Mapping[str, Any]], axes: Sequence[str], metric: Metric, fixed: bool = False
) -> list[dict[str, str]]:
    """Return a row a place and phase: rounded means over seeds.

    Parameters are counted where the accuracy to reach is `fixed`. Without a published counterpart
    there is no column of published memory.
    """
    cells: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        place = (*(str(row[axis]) for axis in axes), str(row["part"]), row["phase"])
        cells.setdefault(place, []).append(row)
    shown = [_shown(cell, axes, metric, fixed) for cell in cells.values()]
    left_out = [] if fixed else [_PARAMS]
    if all(row[_PUBLISHED] == NOTHING for row in shown):
        left_out.append(_PUBLISHED)
    return [{head: row[head] for head in row if head not in left_out} for row in shown]


def _shown(cell: Seeds, axes: Sequence[str], metric: Metric, fixed: bool) -> dict[str, str]:
    scores = _known(cell, "score")
    return {axis: show_value(cell[0][axis]) for axis in axes} | {
        "Phase": _phase(cell, fixed),
        "Rounds": _rounds(cell),
        "Upload": _mean(cell, "bytes_up", _bytes),
        "Download": _mean(cell, "bytes_down", _bytes),
        "Both": _mean(cell, "bytes", _bytes),
        _PARAMS: _mean(cell, "params", human_count),
        "Times one-shot": _mean(cell, "times_one_shot", "{:.3g}".format),
        head_of(metric): mean_and_std(mean(scores), spread(scores)) if scores else NOTHING,
        "Memory (MiB)": _mean(cell, "memory_mib", _mib),
        _PUBLISHED: _mean(cell, "published_memory_mib", _mib),
    }


def _phase(cell: Seeds, fixed: bool) -> str:
    """Name the phase, and the number of seeds that have come to its end if not all have."""
    name = cell[0]["phase"]
    shown = _NAMES.get(name, name.replace("_", " "))
    if fixed and name == TO_REACH:
        shown = _TO_FIXED
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


def legend(metric: Metric, source: str | None, reach: Reach | None = None) -> dict[str, str]:
    """Return the explanation of each column.

    `source` names the paper of the published memory, `reach` the cells whose accuracy others are
    to reach, or accuracies, with the names of axes and values that people read.
    """
    texts = dict(_LEGEND)
    for mark, value in (("{source}", source or ""), ("{reach}", _explain_reach(reach, metric))):
        texts = {name: text.replace(mark, value).strip() for name, text in texts.items()}
    score = "at the end of a total's round, mean ± standard deviation (n−1) over seeds."
    return {**texts, head_of(metric): score}


def _explain_reach(reach: Reach | None, metric: Metric) -> str:
    if is_fixed(reach):
        return f"{_TO_FIXED}: {explain_goal(reach, metric)}."
    if not isinstance(reach, dict):
        return ""
    return (
        f"{_NAMES[TO_REACH]}: until the end of the first evaluated round that is as accurate as "
        f"the end of the run with {join_labels(reach, reach.values())}, of the same seed, on the "
        "same samples."
    )


def explain_goal(reach: Reach | None, metric: Metric) -> str:
    """Say until when something is counted where `reach` has accuracies."""
    goals = [
        f"{goal:g} % ({axis} = {value})"
        for axis, by_name in by_value(reach).items()
        for value, goal in by_name.items()
    ]
    text = ", ".join(goals) or f"{reach:g} %"
    return f"until the end of the first evaluated round whose {METRICS[metric]} is at least {text}"


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
    moved = run.total.up + run.total.down
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
        "params": run.total.everyone / BYTES,
        "params_to_reach": None if run.reached is None else run.reached.params,
    }
    return {name: known[name] for name in get_args(Communicated)}
