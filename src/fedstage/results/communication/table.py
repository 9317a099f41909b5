"""Exact tables of what one client sends and receives.

One table has one row per phase, and rows of sums; the other, for judging claims, one per run.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import get_args

import pyarrow as pa

from fedstage.experiments.runs_file import SEED
from fedstage.results.communication.phases import Moved
from fedstage.results.communication.runs import Reached, RunTraffic
from fedstage.results.tables.columns import Cell, Column
from fedstage.settings.scores import Communicated

MIB = 2**20
#: The phase in which clients fetch the ensemble.
ENSEMBLE = "ensemble"
#: Rows of sums: until training ends, until the best round on validation samples, and until the
#: first round that has reached its goal.
TOTAL, TO_BEST, TO_REACH = "total", "total_to_best", "total_to_reach"
#: The columns behind the axes and the seed, in the order of files.
COLUMNS = (
    Column("part", type=pa.int64()),  # of the run; null for a sum
    Column("phase", type=pa.string()),
    # 0 for a phase outside of rounds; for a sum its last round.
    Column("rounds", type=pa.int64()),
    # Null, like all numbers, for a score that is never reached.
    Column("bytes_up"),  # of the mean client: all participants' over the number of clients
    Column("bytes_down"),
    Column("bytes"),
    Column("times_one_shot"),  # relative to one model up and one down, as with_one_unit
    Column("params"),  # of all participants, in both directions: bytes / 4
    Column("score"),  # percent, of sums
    Column("target"),  # percent, of the sum until it is reached
    Column("memory_bytes", type=pa.int64()),  # that prediction needs; in the total
    Column("memory_mib"),
    Column("published_memory_mib"),
    Column("published_params"),  # for the sum until a target is reached
)
_EMPTY = dict[str, Cell].fromkeys(column.name for column in COLUMNS)
RUN_COLUMNS = tuple(Column(name) for name in get_args(Communicated))


def traffic_rows(run: RunTraffic) -> list[dict[str, Cell]]:
    """Return the rows of a run as exact numbers, without its axes."""
    rows = [
        _row(run, phase.name, phase.rounds, phase.moved) | {"part": phase.part}
        for phase in run.phases
    ]
    memory: dict[str, Cell] = {
        "memory_bytes": run.held,
        "memory_mib": run.held / MIB,
        "published_memory_mib": run.memory_mib,
    }
    rows.append(_sum(run, TOTAL, replace(run.course[-1], moved=run.total)) | memory)
    if run.best is not None:
        rows.append(_sum(run, TO_BEST, run.best))
    if run.target is not None:
        # Empty where no evaluated round reaches the target.
        reached = _sum(run, TO_REACH, run.reached) if run.reached else _EMPTY | {"phase": TO_REACH}
        rows.append(reached | {"target": run.target, "published_params": run.published_params})
    return rows


def _sum(run: RunTraffic, name: str, reached: Reached) -> dict[str, Cell]:
    rounds = reached.round if run.iterative else 0
    return _row(run, name, rounds, reached.moved) | {"score": reached.score}


def _row(run: RunTraffic, phase: str, rounds: int, moved: Moved) -> dict[str, Cell]:
    return _EMPTY | {
        "phase": phase,
        "rounds": rounds,
        "bytes_up": moved.up,
        "bytes_down": moved.down,
        "bytes": moved.both,
        "times_one_shot": run.of_model(moved),
        "params": moved.params,
    }


def table_rows(runs: Iterable[RunTraffic], axes: Sequence[str]) -> list[dict[str, Cell]]:
    """Return the rows of all runs, each with its axes and seed."""
    return [
        {axis: run.settings[axis] for axis in (*axes, SEED)} | row
        for run in runs
        for row in traffic_rows(run)
    ]


def run_rows(runs: Sequence[RunTraffic]) -> list[dict[str, Cell]]:
    """Return each run's value on every axis, and its numbers; None for a number it lacks."""
    return [{**run.settings, **_numbers(run)} for run in runs]


def _numbers(run: RunTraffic) -> dict[str, Cell]:
    fetched = [phase.moved.down for phase in run.phases if phase.name == ENSEMBLE]
    moved = run.total
    to_best, to_reach = (one.moved if one else None for one in (run.best, run.reached))
    known: dict[Communicated, float | None] = {
        "bytes": moved.both,
        "times_one_shot": run.of_model(moved),
        "bytes_to_best": to_best.both if to_best else None,
        "times_one_shot_to_best": run.of_model(to_best) if to_best else None,
        "bytes_to_reach": to_reach.both if to_reach else None,
        "times_one_shot_to_reach": run.of_model(to_reach) if to_reach else None,
        "bytes_up_a_round": run.in_rounds.up / run.rounds if run.rounds else None,
        "ensemble_bytes": sum(fetched) if fetched else None,
        "memory_bytes": float(run.held),
        "params": moved.params,
        "params_to_reach": to_reach.params if to_reach else None,
    }
    return {name: known[name] for name in get_args(Communicated)}
