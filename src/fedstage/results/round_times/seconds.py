"""Seconds of the jobs of a run's rounds, from the records that the jobs themselves wrote.

A record says `compute_s`: the seconds inside the stage function, reading and writing included and
start-up not. It is a measurement of one machine on one day, unlike everything else in `results`.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from fedstage.errors import FedstageError
from fedstage.plan.jobs import Job, jobs_of
from fedstage.plan.sharing import line_id, normalised, undistilled
from fedstage.settings.lines import Line
from fedstage.storage.records import by_path, records_of


@dataclass(frozen=True)
class Timed:
    """What a job took, and on what.

    Attributes
    ----------
    seconds : float
        Of computing.
    machine : tuple
        Processor, number of cores, and the GPU or ``cpu``.
    """

    seconds: float
    machine: tuple[str, int, str]


@dataclass(frozen=True)
class Spread:
    """Median and quartiles of measurements."""

    median: float
    low: float
    high: float


def read_times(root: Path, line: Line, rounds: int) -> dict[Job, Timed]:
    """Return what each job of a run's rounds took.

    Parameters
    ----------
    root : Path
        The working folder, in which `results` is.

    Raises
    ------
    FedstageError
        If a job has no record, or its record is of several jobs.
    """
    ids = dict.fromkeys(line_id(one) for one in (undistilled(line), normalised(line)))
    records = [record for name in ids for _, record in records_of(root, name)]
    made = _latest(records)
    return {job: _timed(line, job, made, records) for job in jobs_of(line, rounds)}


def _latest(records: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the last record of each file that a job wrote."""
    ordered = sorted(records, key=lambda record: str(record["made"]))
    return {file: record for record in ordered for file in by_path(record["outputs"])}


def _timed(
    line: Line, job: Job, made: Mapping[str, dict[str, Any]], records: Iterable[dict[str, Any]]
) -> Timed:
    record = made.get(job.file)
    if record is None:
        stages = {record["stage"] for record in records} & {"segment", "logits_segment"}
        if stages:
            raise _of_several(job, "segment")
        raise FedstageError(
            f"{job.file}: no record below results/logs of the job that made it: the logs were "
            "deleted, so its seconds are not known; delete the file to make it again"
        )
    if record["stage"] != job.stage:
        raise _of_several(job, record["stage"])
    return Timed(float(record["compute_s"]), _machine(line, record))


def _of_several(job: Job, stage: str) -> FedstageError:
    return FedstageError(
        f"{job.file}: made by a job of stage {stage!r}, whose seconds are of several jobs; round "
        "times need execution.granularity = 'participant' and clients_per_job = 1, in a working "
        "folder without these results (snakemake --directory)"
    )


def _machine(line: Line, record: Mapping[str, Any]) -> tuple[str, int, str]:
    found = record.get("machine", {})
    gpu = None if line.numerics.device == "cpu" else found.get("gpu")
    return str(found.get("processor", "unknown")), int(found.get("cores", 0)), str(gpu or "cpu")


# --- a round --------------------------------------------------------------------------------------


def per_participant(times: Mapping[Job, Timed]) -> list[float]:
    """Return the seconds of each participant's training."""
    return [timed.seconds for job, timed in times.items() if job.stage == "local_training"]


def per_round(times: Mapping[Job, Timed], stages: Container[str]) -> list[float]:
    """Return the seconds of all jobs of some stages together, of each round that has any."""
    rounds: dict[int, float] = defaultdict(float)
    for job, timed in times.items():
        if job.stage in stages:
            rounds[job.round] += timed.seconds
    return list(rounds.values())


def spread(seconds: Sequence[float]) -> Spread | None:
    """Return median and quartiles; None if there is nothing."""
    if not seconds:
        return None
    if len(seconds) == 1:
        return Spread(seconds[0], seconds[0], seconds[0])
    low, _, high = quantiles(seconds, n=4, method="inclusive")
    return Spread(median(seconds), low, high)
