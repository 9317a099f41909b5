"""The table of measured seconds: training, aggregation, logits and distillation of a round."""

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from fedstage.plan.jobs import Job
from fedstage.results.metrics import arrow_type
from fedstage.results.round_times.seconds import Spread, Timed, per_participant, per_round, spread
from fedstage.results.tables.exact import Cell
from fedstage.results.tables.labels import NOTHING

Times = Mapping[Job, Timed]

#: What is done with logits, and what is taught: from logits, or features of clients' samples.
_LOGITS = ("logits", "cached_labels", "selected_labels")
_TEACHING = ("distillation", "feature_training", "head_sharing")

#: Columns of a round: their heads, and the stages whose jobs are added up.
_PARTS = {
    "training": ("Training", ("local_training",)),
    "aggregation": ("Aggregation", ("aggregation",)),
    "logits": ("Logits", _LOGITS),
    "distillation": ("Distillation", _TEACHING),
    "added": ("Logits and distillation", (*_LOGITS, *_TEACHING)),
    "round": ("Round", ("local_training", "aggregation", *_LOGITS, *_TEACHING)),
}
_DIGITS = 6
_PARTICIPANT = ("participant", "A participant")

LEGEND = {
    "Rounds": "number of measured rounds, of all seeds.",
    "A participant": (
        "seconds that one participant trains: median (quartiles) over participants, rounds and "
        "seeds. All others: the seconds of all such jobs of a round together, median (quartiles) "
        "over rounds and seeds."
    ),
    "Training": "of all participants.",
    "Aggregation": "of all groups.",
    "Logits": "of the ensemble's members, on the public images.",
    "Distillation": f"of all students; {NOTHING} where nothing is distilled.",
    "Logits and distillation": "what distillation adds to a round.",
    "Round": "all of these, one job after the other.",
}


def summarise_times(times: Sequence[Times]) -> dict[str, Spread | None]:
    """Return the spread of each column over the runs of all seeds."""

    def pooled(values: Iterable[list[float]]) -> Spread | None:
        return spread([value for one in values for value in one])

    parts = {
        name: pooled(per_round(one, stages) for one in times)
        for name, (_, stages) in _PARTS.items()
    }
    return {_PARTICIPANT[0]: pooled(map(per_participant, times)), **parts}


def as_texts(spreads: Mapping[str, Spread | None]) -> dict[str, str]:
    """Return the texts of a row: ``1.20 (1.15–1.31)``."""
    heads = dict([_PARTICIPANT]) | {name: head for name, (head, _) in _PARTS.items()}
    return {heads[name]: _show(one) for name, one in spreads.items()}


def as_numbers(spreads: Mapping[str, Spread | None]) -> dict[str, Cell]:
    """Return the numbers of a row: medians and quartiles, in seconds.

    Jobs record milliseconds; rounding removes the errors of float sums.
    """
    ends = {"median": "", "low": "_q1", "high": "_q3"}
    return {
        f"{name}_s{suffix}": round(getattr(one, end), _DIGITS) if one else None
        for name, one in spreads.items()
        for end, suffix in ends.items()
    }


def machines_of(times: Iterable[Times]) -> list[str]:
    """Return the machines of all jobs, such as ``AMD EPYC 7742, 2 cores, cpu``."""
    found = dict.fromkeys(timed.machine for one in times for timed in one.values())
    return [f"{name}, {cores} cores, {device}" for name, cores, device in sorted(found)]


def times_schema(rows: Sequence[Mapping[str, Cell]], axes: Iterable[str]) -> pa.Schema:
    """Return the typed columns of the table: its axes, then the measurements."""
    types = {axis: arrow_type(row[axis] for row in rows) for axis in axes}
    types |= {"measured_rounds": pa.int64(), "seeds": pa.int64(), "machine": pa.string()}
    return pa.schema([(name, types.get(name, pa.float64())) for name in rows[0]])


def _show(one: Spread | None) -> str:
    if one is None:
        return NOTHING
    return f"{_seconds(one.median)} ({_seconds(one.low)}–{_seconds(one.high)})"


def _seconds(value: float) -> str:
    """Write seconds with about three digits."""
    return f"{value:.{3 if value < 1 else 2 if value < 100 else 1}f}"
