"""The seconds of the jobs of a round, from their records, and their table."""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any

import pyarrow as pa

from fedstage.errors import FedstageError
from fedstage.plan.jobs import Job, jobs_of
from fedstage.plan.training import SECURE
from fedstage.plan.training_folder import owners, training_id
from fedstage.results.tables.columns import Cell, Column
from fedstage.results.tables.labels import NOTHING
from fedstage.settings.recipes import Recipe
from fedstage.storage.provenance import PARTS
from fedstage.storage.records import by_path, records_in_order


@dataclass(frozen=True)
class Timed:
    """Seconds of a job, and its machine: processor, number of cores, and the GPU or ``cpu``."""

    seconds: float
    machine: tuple[str, int, str]


def read_times(root: Path, recipe: Recipe, rounds: int) -> dict[Job, Timed]:
    """Return the seconds of each job of a run's rounds, with `results` in the folder `root`.

    Raises
    ------
    FedstageError
        If a job has no record.
    """
    latest = {
        file: Timed(seconds, _machine(recipe, record))
        for record in records_in_order(root, *map(training_id, reversed(owners(recipe))))
        for file, seconds in _seconds_of(record).items()
    }
    made = (
        job for job in jobs_of(recipe, rounds) if job.file in latest or not _unread(job, rounds)
    )
    return {job: _known(latest, job) for job in made}


def _seconds_of(record: Mapping[str, Any]) -> dict[str, float]:
    """Return the seconds of each file that a job made, from its parts if it has several.

    Earlier versions did not record the seconds of each of several participants.
    """
    outputs = record["outputs"]
    single = len(outputs.get("outputs", {})) <= 1
    whole = dict.fromkeys(by_path(outputs), float(record["compute_s"])) if single else {}
    return {**whole, **record.get(PARTS, {})}


def _unread(job: Job, last: int) -> bool:
    """Whether no job reads a job's files, as for students but the main one in the last round."""
    return job.stage in ("distillation", "head_sharing") and job.round == last and job.group > 0


def _known(latest: Mapping[str, Timed], job: Job) -> Timed:
    if job.file not in latest:
        raise FedstageError(
            f"{job.file}: no record below results/logs has its seconds: logs were deleted, or "
            "are of an earlier version; delete the file to make it again"
        )
    return latest[job.file]


def _machine(recipe: Recipe, record: Mapping[str, Any]) -> tuple[str, int, str]:
    machine = record.get("machine", {})
    gpu = None if recipe.numerics.device == "cpu" else machine.get("gpu")
    return str(machine.get("processor", "unknown")), int(machine.get("cores", 0)), str(gpu or "cpu")


def per_participant(times: Mapping[Job, Timed]) -> list[float]:
    """Return the seconds of each participant's training."""
    return [timed.seconds for job, timed in times.items() if job.stage == "local_training"]


def per_round(times: Mapping[Job, Timed], stages: Container[str]) -> list[float]:
    """Return the total seconds of the jobs of some stages, for each round that has any."""
    rounds: dict[int, float] = defaultdict(float)
    for job, timed in times.items():
        if job.stage in stages:
            rounds[job.round] += timed.seconds
    return list(rounds.values())


def spread(seconds: Sequence[float]) -> list[float]:
    """Return median, lower and upper quartile; nothing without a measurement."""
    if len(seconds) < 2:
        return [*seconds] * 3
    low, median, high = quantiles(seconds, n=4, method="inclusive")
    return [median, low, high]


# --- the table ------------------------------------------------------------------------------------

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
