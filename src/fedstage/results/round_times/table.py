"""The table of measured seconds: training, aggregation, logits and distillation of a round."""

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from fedstage.plan.jobs import Job
from fedstage.plan.training import SECURE
from fedstage.results.round_times.seconds import Timed, per_participant, per_round, spread
from fedstage.results.tables.columns import Column
from fedstage.results.tables.exact import Cell
from fedstage.results.tables.labels import NOTHING

Times = Mapping[Job, Timed]

#: Stages that process updates; with secure aggregation, clients run some of them.
_AGGREGATION = ("aggregation", *(stage.name for stage in SECURE))
#: Stages that process logits, and stages that teach from logits or features of clients' samples.
_LOGITS = ("logits", "cached_labels", "selected_labels")
_TEACHING = ("distillation", "feature_training", "head_sharing")
#: The stages whose jobs in a round are added up in a column.
_STAGES = {
    "training_s": ("local_training",),
    "aggregation_s": _AGGREGATION,
    "logits_s": _LOGITS,
    "distillation_s": _TEACHING,
    "added_s": (*_LOGITS, *_TEACHING),
    "round_s": ("local_training", *_AGGREGATION, *_LOGITS, *_TEACHING),
}
_DIGITS = 6
#: Ends of the columns of the median, and of the lower and the upper quartile.
_SUFFIXES = ("", "_q1", "_q3")


def _show(values: Sequence[float]) -> str:
    """Write median and quartiles: ``1.20 (1.15–1.31)``."""
    if not values:
        return NOTHING
    median, low, high = map(_seconds, spread(values))
    return f"{median} ({low}–{high})"


def _seconds(value: float) -> str:
    """Write seconds with about three digits."""
    return f"{value:.{3 if value < 1 else 2 if value < 100 else 1}f}"


ROUNDS = Column(
    "measured_rounds", "Rounds", "number of measured rounds, of all seeds.", str, pa.int64()
)
#: Columns of seconds; files have medians, and quartiles in separate columns.
_SECONDS = (
    Column("participant_s", "A participant",
        "seconds that one participant trains: median (quartiles) over participants, rounds and "
        "seeds. All others: the seconds of all such jobs of a round together, median (quartiles) "
        "over rounds and seeds.", _show),
    Column("training_s", "Training", "of all participants.", _show),
    Column("aggregation_s", "Aggregation",
        "of all groups; all steps of it, where it is secure.", _show),
    Column("logits_s", "Logits", "of the ensemble's members, on the public images.", _show),
    Column("distillation_s", "Distillation",
        f"of all students; {NOTHING} where nothing is distilled.", _show),
    Column("added_s", "Logits and distillation", "what distillation adds to a round.", _show),
    Column("round_s", "Round", "all of these, one job after the other.", _show),
)  # fmt: skip
SHOWN = (ROUNDS, *_SECONDS)
#: The columns of files behind the axes.
COLUMNS = (
    *(Column(f"{column.name}{end}") for column in _SECONDS for end in _SUFFIXES),
    ROUNDS,
    Column("seeds", type=pa.int64()),
    Column("machine", type=pa.string()),
)  # fmt: skip


def seconds_by_column(times: Sequence[Times]) -> dict[str, list[float]]:
    """Return the seconds of the jobs, or rounds, of the runs of all seeds, by column."""
    return {"participant_s": [seconds for run in times for seconds in per_participant(run)]} | {
        name: [seconds for run in times for seconds in per_round(run, stages)]
        for name, stages in _STAGES.items()
    }


def as_numbers(seconds: Mapping[str, Sequence[float]]) -> dict[str, Cell]:
    """Return the numbers of a row: medians and quartiles.

    Jobs record milliseconds; rounding removes the errors of float sums.
    """
    return {
        f"{name}{suffix}": round(value, _DIGITS) if values else None
        for name, values in seconds.items()
        for suffix, value in zip(_SUFFIXES, spread(values) or [0.0] * 3, strict=True)
    }


def machines_of(times: Iterable[Times]) -> list[str]:
    """Return the machines of all jobs, such as ``AMD EPYC 7742, 2 cores, cpu``."""
    found = dict.fromkeys(timed.machine for run in times for timed in run.values())
    return [f"{name}, {cores} cores, {device}" for name, cores, device in sorted(found)]
