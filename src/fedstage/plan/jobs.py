"""The jobs of a line's rounds and what each waits for: edges between files as edges between jobs.

A job makes one equation: the training of a participant, the aggregation of a group, the logits of a
group's members, the distillation of a student. What it reads says `fedstage.plan.edges.read_by`, which
are the inputs of Snakemake's rules; here are no edges of our own.
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
    """A job of a round, ordered as the rounds are.

    Attributes
    ----------
    round, group : int
        t and k.
    stage : str
        ``local_training``, ``aggregation``, ``logits`` or ``distillation``.
    file : str
        What it makes; of an aggregation, the model.
    """

    round: int
    group: int
    stage: str
    file: str

    @property
    def slot(self) -> int:
        """The slot that trains; only of a local training."""
        return int(PurePosixPath(self.file).stem.removeprefix("slot_"))


#: What each job waits for.
Edges = Mapping[Job, tuple[Job, ...]]


def job_of(file: str) -> Job | None:
    """Return the job that makes a file, None if the file is of no round of a training line."""
    origin = find_origin(file)
    if origin is None:
        return None
    if origin.stage == "aggregation":  # it makes several files
        file = str(PurePosixPath(file).with_name("aggregated.safetensors"))
    return Job(origin.round, origin.group, origin.stage, file)


def jobs_behind(line: Line, job: Job) -> tuple[Job, ...]:
    """Return the jobs whose files a job of a line reads."""
    origin = find_origin(job.file)
    assert origin is not None, "a job is of a round"
    under = {artefacts.line_folder(one): one for one in (normalised(line), undistilled(line))}
    read = read_by(under[origin.folder], origin)
    return _jobs(file for files in read.values() for file in files)


def jobs_of(line: Line, last: int, first: int = 1) -> dict[Job, tuple[Job, ...]]:
    """Return all jobs behind the global models of every group after round `last`, with their edges.

    Parameters
    ----------
    first : int
        Jobs of earlier rounds stand among what others wait for, but have no edges themselves.
    """
    wanted = (artefacts.global_model(line, last, group) for group in range(line.global_models))
    waiting = list(_jobs(wanted))
    found: dict[Job, tuple[Job, ...]] = {}
    while waiting:
        job = waiting.pop()
        if job not in found and job.round >= first:
            found[job] = jobs_behind(line, job)
            waiting.extend(found[job])
    return dict(sorted(found.items()))


def members(line: Line, job: Job) -> int:
    """Return how many models the logits of a job are of: those that it reads, or draws."""
    drawn = parse_sampled(PurePosixPath(job.file).name.partition("-")[0])
    return drawn.samples if drawn else len(jobs_behind(line, job))


def _jobs(files: Iterable[str]) -> tuple[Job, ...]:
    jobs = (job_of(file) for file in files)
    return tuple(dict.fromkeys(job for job in jobs if job is not None))
