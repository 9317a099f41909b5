"""One line for a fault: of the Snakefile, or of failed jobs, last and below Snakemake's own."""

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.storage.files import load_json
from fedstage.storage.provenance import ERROR

#: The parts in which faults of one cause differ: the job, and the seed of the recipe.
_OF_THE_JOB = re.compile(r"(client|participant|round|group|step)[ _]\d+|(seed)[ =]?\d+(-\w+)?")
_MOST = 5
_NO_MESSAGE = "no error message was recorded; see the output above"


def explained(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns, or end the process with the one line of its error.

    Otherwise Snakemake would print the exception between its place in the Snakefile and the stack.
    """
    try:
        return function(*arguments)
    except FedstageError as error:
        sys.exit(f"fedstage: {error}")


def faults(failed: Iterable[tuple[str, Path | None]], since: float) -> list[str]:
    """Return, for each cause of failure, the rule, log and fault of a job, and the number of jobs.

    Parameters
    ----------
    failed : iterable of (str, Path or None)
        The rule and the log of each job.
    since : float
        When the run began; an older log belongs to another run.
    """
    told: dict[str, list[tuple[str, str]]] = {}
    for rule, log in sorted(failed, key=str):
        text = _fault(log, since) or _NO_MESSAGE
        told.setdefault(_cause(text), []).append((text, f"{rule} failed: {log or 'no log'}"))
    # An error is the last line; if there are several, the one of the most jobs.
    groups = sorted(told.values(), key=lambda jobs: (jobs[0][0] == _NO_MESSAGE, -len(jobs), jobs))
    lines = [line for jobs in reversed(groups[:_MOST]) for line in _summary(jobs)]
    rest = len(groups) - _MOST
    more = [f"{rest} more in the log of this run, in .snakemake/log"] if rest > 0 else []
    return [*more, *lines]


def _cause(fault: str) -> str:
    """Return a fault without the parts that only distinguish one job from another."""
    return _OF_THE_JOB.sub(r"\1", fault)


def _summary(jobs: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Return two lines on jobs that failed for one cause, about the first of them."""
    fault, where = jobs[0]
    return where, f"{fault} ({len(jobs)} jobs)" if len(jobs) > 1 else fault


def _fault(log: Path | None, since: float) -> str | None:
    """Return the fault in the record of a job, None for a job that was ended from outside."""
    if log is None or not log.is_file() or log.stat().st_mtime < since:
        return None
    try:
        return "\n".join(load_json(log).get(ERROR, [])) or None
    except FedstageError:
        return None
