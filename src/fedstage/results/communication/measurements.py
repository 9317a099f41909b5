"""What claims about communication are judged by: a row a run."""

from collections.abc import Sequence
from typing import get_args

import pyarrow as pa

from fedstage.results.communication.runs import Reached, RunTraffic
from fedstage.results.tables.plain import Cell, arrow_type
from fedstage.settings.scores import Communicated

#: The phase in which clients fetch the ensemble.
ENSEMBLE = "ensemble"


def run_rows(runs: Sequence[RunTraffic]) -> list[dict[str, Cell]]:
    """Return each run's value on every axis, and its numbers; None for what it does not have."""
    return [{**run.settings, **_numbers(run)} for run in runs]


def run_schema(rows: Sequence[dict[str, Cell]]) -> pa.Schema:
    """Return the columns of these rows, typed."""
    names = get_args(Communicated)
    axes = [(name, arrow_type(row[name] for row in rows)) for name in rows[0] if name not in names]
    return pa.schema([*axes, *((name, pa.float64()) for name in names)])


def _numbers(run: RunTraffic) -> dict[str, Cell]:
    rounds = sum(phase.rounds for phase in run.phases)
    fetched = [phase.down for phase in run.phases if phase.name == ENSEMBLE]
    moved = sum(run.total)
    to_best, to_reach = _moved(run.best), _moved(run.reached)
    known: dict[Communicated, float | None] = {
        "bytes": moved,
        "times_one_shot": moved / run.one_shot,
        "bytes_to_best": to_best,
        "times_one_shot_to_best": to_best and to_best / run.one_shot,
        "bytes_to_reach": to_reach,
        "times_one_shot_to_reach": to_reach and to_reach / run.one_shot,
        "bytes_up_a_round": _sent(run) / rounds if rounds else None,
        "ensemble_bytes": sum(fetched) if fetched else None,
        "memory_bytes": float(run.held),
    }
    return {name: known[name] for name in get_args(Communicated)}


def _moved(reached: Reached | None) -> float | None:
    return None if reached is None else reached.up + reached.down


def _sent(run: RunTraffic) -> float:
    """Return what one client sends in all rounds, of the model or of an aggregator."""
    return sum(phase.up for phase in run.phases if phase.rounds)
