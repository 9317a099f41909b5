"""Seconds of the jobs of a run's rounds, from the records that the jobs themselves wrote.

The `compute_s` of a record are the seconds inside the stage function, with reading and writing but
without start-up. They depend on the machine and the day, unlike everything else in `results`.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from fedstage.errors import FedstageError
from fedstage.plan.identity import line_id
from fedstage.plan.jobs import Job, jobs_of
from fedstage.plan.sharing import normalised, undistilled
from fedstage.settings.lines import Line
from fedstage.storage.records import by_path, records_of


@dataclass(frozen=True)
class Timed:
    """Seconds of a job, and its machine: processor, number of cores, and the GPU or ``cpu``."""

    seconds: float
    machine: tuple[str, int, str]


@dataclass(frozen=True)
class Spread:
    """Median and quartiles of measurements."""

    median: float
    low: float
    high: float


def read_times(root: Path, line: Line, rounds: int) -> dict[Job, Timed]:
    """Return the seconds of each job of a run's rounds, with `results` in the folder `root`.

    Raises
    ------
    FedstageError
        If a job has no record, or shares one with other jobs.
    """
    ids = dict.fromkeys(line_id(one) for one in (undistilled(line), normalised(line)))
    records = [record for name in ids for _, record in records_of(root, name)]
    records.sort(key=lambda record: str(record["made"]))
    latest = {file: record for record in records for file in by_path(record["outputs"])}
    made = (job for job in jobs_of(line, rounds) if job.file in latest or not _unread(job, rounds))
    return {job: _timed(line, job, latest, records) for job in made}


def _unread(job: Job, last: int) -> bool:
    """Whether nobody reads what a job makes: in the last round all students but the main model."""
    return job.stage in ("distillation", "head_transfer") and job.round == last and job.group > 0


def _timed(
    line: Line, job: Job, latest: Mapping[str, dict[str, Any]], records: Iterable[dict[str, Any]]
) -> Timed:
    record = latest.get(job.file)
    if record is None:
        stages = {record["stage"] for record in records} & {"segment", "logits_segment"}
        if stages:
            raise _of_several(job, "segment")
        raise FedstageError(
            f"{job.file}: no record below results/logs of the job that made it: the logs were "
            "deleted, so its seconds are not known; delete the file to make it again"
        )
    updates = len(by_path(record["outputs"])) if record["stage"] == "local_training" else 1
    if record["stage"] != job.stage or updates > 1:
        raise _of_several(job, record["stage"])
    return Timed(float(record["compute_s"]), _machine(line, record))


def _of_several(job: Job, stage: str) -> FedstageError:
    return FedstageError(
        f"{job.file}: made by a job of stage {stage!r}, whose seconds are of several jobs; round "
        "times need execution.granularity = 'participant' and clients_per_job = 1, in a working "
        "folder without these results (snakemake --directory)"
    )


def _machine(line: Line, record: Mapping[str, Any]) -> tuple[str, int, str]:
    machine = record.get("machine", {})
    gpu = None if line.numerics.device == "cpu" else machine.get("gpu")
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


def spread(seconds: Sequence[float]) -> Spread | None:
    """Return median and quartiles, or None without a measurement."""
    if not seconds:
        return None
    if len(seconds) == 1:
        return Spread(seconds[0], seconds[0], seconds[0])
    low, _, high = quantiles(seconds, n=4, method="inclusive")
    return Spread(median(seconds), low, high)
