"""The jobs of a line's rounds, and which jobs each waits for.

A job evaluates one equation: the training of a participant, the aggregation of a group, the logits
of a group's members, the distillation of a student. Edges between jobs follow from the files that
they read, as do the inputs of Snakemake's rules: see `fedstage.plan.edges.read_by`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from fedstage.plan import artefacts
from fedstage.plan.edges import find_origin, read_by
from fedstage.plan.members import parse_sampled
from fedstage.plan.sharing import normalised, undistilled
from fedstage.settings.lines import Line


@dataclass(frozen=True, order=True)
class Job:
    """The job of a stage in round t of group k, ordered by rounds, which makes `file`."""

    round: int
    group: int
    stage: str
    file: str

    @property
    def slot(self) -> int:
        """The slot that a local training trains."""
        return int(PurePosixPath(self.file).stem.removeprefix("slot_"))


#: What each job waits for.
Edges = Mapping[Job, tuple[Job, ...]]


def job_of(file: str) -> Job | None:
    """Return the job that makes a file, None if the file is of no round of a training line."""
    origin = find_origin(file)
    if origin is None:
        return None
    # Stages that make several files.
    if origin.stage in (main := {"aggregation": "aggregated", "distillation": "distilled"}):
        file = str(PurePosixPath(file).with_name(f"{main[origin.stage]}.safetensors"))
    return Job(origin.round, origin.group, origin.stage, file)


def jobs_behind(line: Line, job: Job) -> tuple[Job, ...]:
    """Return the jobs whose files a job of a line reads."""
    origin = find_origin(job.file)
    assert origin is not None, "a job belongs to a round"
    owners = {artefacts.line_folder(one): one for one in (normalised(line), undistilled(line))}
    read = read_by(owners[origin.folder], origin)
    return _jobs(file for files in read.values() for file in files)


def jobs_of(line: Line, last: int, first: int = 1) -> dict[Job, tuple[Job, ...]]:
    """Return all jobs behind the global models of every group after round `last`, with their edges.

    Jobs before round `first` may be waited for, but have no edges themselves.
    """
    models = (artefacts.global_model(line, last, group) for group in range(line.global_models))
    waiting = list(_jobs(models))
    found: dict[Job, tuple[Job, ...]] = {}
    while waiting:
        job = waiting.pop()
        if job not in found and job.round >= first:
            found[job] = jobs_behind(line, job)
            waiting.extend(found[job])
    return dict(sorted(found.items()))


def members(line: Line, job: Job) -> int:
    """Return how many models a job computes logits of: those that it reads, or draws."""
    drawn = parse_sampled(PurePosixPath(job.file).name.partition("-")[0])
    return drawn.samples if drawn else len(jobs_behind(line, job))


def _jobs(files: Iterable[str]) -> tuple[Job, ...]:
    jobs = (job_of(file) for file in files)
    return tuple(dict.fromkeys(job for job in jobs if job is not None))
