"""The seconds of jobs, from their records: of a run as a whole, and of each job of a round."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import ExperimentRun
from fedstage.plan.jobs import Job, jobs_of
from fedstage.plan.runs import folders_of
from fedstage.plan.training_folder import owners, training_id
from fedstage.settings.recipes import Recipe
from fedstage.storage.provenance import PARTS
from fedstage.storage.records import by_path, records_in_order, records_of


def spent(run: ExperimentRun, known: dict[str, float]) -> float:
    """Return the seconds of all jobs of a run's recipes.

    `known` caches the seconds of each recipe by its id, and is extended by missing ones.
    """
    parts = run.candidates[run.which()].parts
    paths = (path for part in parts for path in folders_of(part.recipe))
    ids = dict.fromkeys(path.rpartition("/")[2] for path in paths)
    for name in ids:
        if name not in known:
            known[name] = sum(float(job["compute_s"]) for _, job in records_of(Path(), name))
    return sum(known[name] for name in ids)


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
