"""Stages that do several rounds in one process: of some groups, or the logits of a group."""

from collections.abc import Collection, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from fedstage.plan.graph import File, Job, files_in
from fedstage.plan.segment_rules import outputs_of
from fedstage.plan.segments import LogitsSegment, Segment
from fedstage.plan.training import local_training
from fedstage.stages import Seconds, run_job


def segment(part: Segment, kept: Collection[str] | None = None) -> Seconds:
    """Run the jobs of a segment, in the order of the graph.

    They read and write the same files as single jobs do. A file that does not stay is deleted as
    soon as no job of the segment reads it any more.

    Parameters
    ----------
    kept : collection of str, optional
        Which updates, models, participants (tables) and logits (for teachers) stay on disk, each
        with its round, such as ``models_25``; all by default.

    Returns
    -------
    dict of str to float
        The seconds of each job that a DAG of single jobs would have.
    """
    jobs = part.jobs()
    unread = _unread_after(jobs, set(outputs_of(jobs, kept)))
    seconds = Seconds()
    for together in _merged(jobs):
        seconds |= run_job(*together)
        for job in together:
            for file in unread.get(job, ()):
                Path(file).unlink()
    return seconds


def _unread_after(jobs: list[Job], kept: set[File]) -> dict[Job, list[File]]:
    """Return the files that do not stay, by the last job that reads or makes them."""
    last: dict[File, Job] = {}
    for job in jobs:
        last |= dict.fromkeys(job.files.values(), job)
        last |= {file: job for file in files_in(job.inputs) if file in last}
    found: dict[Job, list[File]] = {}
    for file, job in last.items():
        if file not in kept:
            found.setdefault(job, []).append(file)
    return found


def _merged(jobs: list[Job]) -> Iterator[list[Job]]:
    """Yield jobs, with participants that train from the same files together."""

    def alike(job: Job) -> Any:
        together = job.stage is local_training
        return (job.at["round"], job.at["group"], job.inputs) if together else job

    for _, some in groupby(jobs, key=alike):
        yield list(some)


def logits_segment(part: LogitsSegment) -> Seconds:
    """Call the stage `logits` for each of the rounds; return the seconds of each."""
    seconds = Seconds()
    for job in part.jobs():
        seconds |= run_job(job)
    return seconds
