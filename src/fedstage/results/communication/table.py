"""Tables of what one client sends and receives.

One has one row per phase and rows of sums; the other, by which claims are judged, one per run.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import get_args

import pyarrow as pa

from fedstage.results.communication.goals import by_value
from fedstage.results.communication.phases import Moved
from fedstage.results.communication.runs import BYTES, Reached, RunTraffic
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
from fedstage.results.tables.exact import Cell
from fedstage.results.tables.labels import (
    METRICS,
    NOTHING,
    head_of,
    human_bytes,
    human_count,
    join_labels,
    show_value,
)
from fedstage.settings.experiments import is_fixed
from fedstage.settings.scores import Communicated, Metric, Reach

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
#: The name of the last sum where the accuracy is fixed.
_TO_FIXED = "**total to the accuracy**"


def _range(lengths: Sequence[int]) -> str:
    """Write numbers of rounds: their minimum and maximum if seeds differ."""
    ends = dict.fromkeys((min(lengths, default=0), max(lengths, default=0)))
    return "–".join(map(str, ends)) if any(ends) else NOTHING


def _mib(size: float) -> str:
    return f"{size:.2f}" if size >= 1 else f"{size:.2g}"


_BYTES = average(lambda count: human_bytes(round(count)))
#: The columns behind the axes and the seed, in the order of files.
COLUMNS = (
    Column("part", type=pa.int64()),  # of the run; null for a sum
    Column("phase", "Phase",
        "what travels, `federated round` in all rounds of a federated method together. "
        f"{_NAMES[TOTAL]}: until training ends. {_NAMES[TO_BEST]}: until the end of the round that "
        "is best on the clients' validation samples. {reach}", type=pa.string()),
    # 0 for a phase outside of rounds; of a sum its last round.
    Column("rounds", "Rounds",
        f"of the phase, {NOTHING} for what happens once; of a total the last round of all.",
        _range, pa.int64()),
    # Null, as all numbers, for a score that is never reached.
    Column("bytes_up", "Upload",
        "bytes that the mean client sends: all participants' over the number of clients.", _BYTES),
    Column("bytes_down", "Download", "bytes that it receives (1 kB = 1000 B).", _BYTES),
    Column("bytes", "Both", "their sum.", _BYTES),
    Column("times_one_shot", "Times one-shot",
        "that sum over one model of a client up and one down.", average("{:.3g}".format)),
    Column("params", "Parameters",
        "numbers of 32 bits that all participants together send and receive, their bytes / 4: "
        "weights and whatever goes with them. Compressed messages count by their bytes too.",
        average(human_count)),
    Column("score",  # percent, of sums
        legend="at the end of a total's round, mean ± standard deviation (n−1) over seeds."),
    Column("target"),  # percent, of the sum until it is reached
    Column("memory_bytes", type=pa.int64()),  # that prediction needs; of the total
    Column("memory_mib", "Memory (MiB)",
        "of all that must be held to predict: models, aggregator (1 MiB = 2^20 B).", average(_mib)),
    Column("published_memory_mib", "Published (MiB)", "the same as {source} reports it.",
        average(_mib)),
    Column("published_params"),  # of the sum until a target is reached
)  # fmt: skip
_EMPTY = dict[str, Cell].fromkeys(column.name for column in COLUMNS)
RUN_COLUMNS = tuple(Column(name) for name in get_args(Communicated))
_SHOWN = (
    *("phase", "rounds", "bytes_up", "bytes_down", "bytes", "params", "times_one_shot", "score"),
    *("memory_mib", "published_memory_mib"),
)


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
        # Empty where no evaluated round reaches the target.
        reached = _sum(run, TO_REACH, run.reached) if run.reached else _EMPTY | {"phase": TO_REACH}
        rows.append(reached | {"target": run.target, "published_params": run.published_params})
    return rows


def _sum(run: RunTraffic, name: str, reached: Reached) -> dict[str, Cell]:
    rounds = reached.round if run.iterative else 0
    moved = Moved(reached.up, reached.down, reached.everyone)
    return _row(run, name, rounds, moved) | {"score": reached.score}


def _row(run: RunTraffic, phase: str, rounds: int, moved: Moved) -> dict[str, Cell]:
    both = moved.up + moved.down
    return _EMPTY | {
        "phase": phase,
        "rounds": rounds,
        "bytes_up": moved.up,
        "bytes_down": moved.down,
        "bytes": both,
        "times_one_shot": both / run.one_shot,
        "params": moved.everyone / BYTES,
    }


def table_rows(runs: Iterable[RunTraffic], axes: Sequence[str]) -> list[dict[str, Cell]]:
    """Return the rows of all runs, each with its axes and seed."""
    return [
        {axis: run.settings[axis] for axis in (*axes, SEED)} | row
        for run in runs
        for row in traffic_rows(run)
    ]


def shown_traffic(
    rows: Iterable[Row],
    axes: Sequence[str],
    metric: Metric,
    source: str | None = None,
    reach: Reach | None = None,
) -> TextTable:
    """Return one line per cell and phase: rounded means over seeds.

    Parameters are counted where `reach` fixes the accuracy to reach. Without a published
    counterpart there is no column of published memory.

    Parameters
    ----------
    source : str, optional
        The paper of the published memory.
    reach : optional
        The cells whose accuracy others are to reach, or accuracies, with the names of axes and
        values that people read.
    """
    fixed = is_fixed(reach)
    lines = []
    for place, seeds in by_cell(rows, [*axes, "part", "phase"]).items():
        cells = known(seeds, COLUMNS) | {"phase": _phase(seeds, fixed)}
        lines.append(([*map(show_value, place[: len(axes)])], cells))
    left_out = [] if fixed else ["params"]
    if not any(cells["published_memory_mib"] for _, cells in lines):
        left_out.append("published_memory_mib")
    columns = {column.name: column for column in COLUMNS}
    phase = columns["phase"].legend.format(reach=_explain_reach(reach, metric)).strip()
    memory = columns["published_memory_mib"].legend.format(source=source)
    columns["phase"] = replace(columns["phase"], legend=phase, show=str)
    columns["score"] = replace(columns["score"], head=head_of(metric))
    columns["published_memory_mib"] = replace(columns["published_memory_mib"], legend=memory)
    shown = [columns[name] for name in _SHOWN if name not in left_out]
    table = text_table(axes, lines, shown)
    score = shown.index(columns["score"])  # what a total reaches is explained last
    notes = [*table.notes[:score], *table.notes[score + 1 :], table.notes[score]]
    return table._replace(left=len(axes) + 1, notes=notes)


def _phase(seeds: Sequence[Row], fixed: bool) -> str:
    """Name the phase, and the number of seeds that have come to its end if not all have."""
    name = seeds[0]["phase"]
    shown = _NAMES.get(name, name.replace("_", " "))
    if fixed and name == TO_REACH:
        shown = _TO_FIXED
    come = sum(row["bytes"] is not None for row in seeds)
    return shown if come == len(seeds) else f"{shown} ({come} of {len(seeds)} seeds)"


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


def _numbers(run: RunTraffic) -> dict[str, Cell]:
    rounds = sum(phase.rounds for phase in run.phases)
    sent = sum(phase.up for phase in run.phases if phase.rounds)
    fetched = [phase.down for phase in run.phases if phase.name == ENSEMBLE]
    moved = run.total.up + run.total.down
    to_best, to_reach = (
        None if reached is None else reached.moved for reached in (run.best, run.reached)
    )
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
