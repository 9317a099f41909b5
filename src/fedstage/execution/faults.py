"""One line for a fault: of the Snakefile, or of failed jobs, last and below Snakemake's own."""

import re
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from threading import current_thread, main_thread
from types import TracebackType
from typing import Any

from fedstage.errors import FedstageError

#: The line that ends a dry run after Ctrl-C or SIGTERM, and the one that ends a run.
INTERRUPTED_PLAN = "fedstage: interrupted"
INTERRUPTED = f"{INTERRUPTED_PLAN}; the same command goes on"

_FAULT = re.compile(r"fedstage \w+: ")
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\):", re.MULTILINE)
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


def expect_interrupts(dryrun: bool) -> None:
    """Let Ctrl-C and SIGTERM end this process with one line, until a run handles them."""
    sys.excepthook = partial(explain_interrupt, INTERRUPTED_PLAN if dryrun else INTERRUPTED)
    in_main = current_thread() is main_thread()
    if in_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def explain_interrupt(
    line: str, kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print a line instead of the traceback of Ctrl-C; replaces `sys.excepthook`."""
    if issubclass(kind, KeyboardInterrupt):
        print(line, file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


def count_failed(failed: Iterable[tuple[str, Path | None]], since: float) -> int:
    """Return how many of the jobs that an interrupted run lists as failed have a fault."""
    return sum(_fault(log, since) is not None for _, log in failed)


def faults(
    failed: Iterable[tuple[str, Path | None]], since: float, interrupted: bool = False
) -> list[str]:
    """Return, for each cause of failure, the rule, log and fault of a job, and the number of jobs.

    Parameters
    ----------
    failed : iterable of (str, Path or None)
        The rule and the log of each job.
    since : float
        When the run began; an older log belongs to another run.
    interrupted : bool
        Whether the run was interrupted, which ends jobs without a message: these are no faults.
    """
    told: dict[str, list[tuple[str, str]]] = {}
    for rule, log in sorted(failed, key=str):
        fault = _fault(log, since)
        if fault or not interrupted:
            text = fault or _NO_MESSAGE
            told.setdefault(_cause(text), []).append((text, f"{rule} failed: {log or 'no log'}"))
    # An error is the last line; if there are several, the one of the most jobs.
    groups = sorted(told.values(), key=lambda jobs: (jobs[0][0] == _NO_MESSAGE, -len(jobs), jobs))
    lines = [line for jobs in reversed(groups[:_MOST]) for line in _summary(jobs)]
    rest = len(groups) - _MOST
    more = [f"{rest} more in the log of this run, in .snakemake/log"] if rest > 0 else []
    return [*more, *lines, *([INTERRUPTED] if interrupted else [])]


def _cause(fault: str) -> str:
    """Return a fault without the parts that only distinguish one job from another."""
    return _OF_THE_JOB.sub(r"\1", fault)


def _summary(jobs: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Return two lines on jobs that failed for one cause, about the first of them."""
    fault, where = jobs[0]
    return where, f"{fault} ({len(jobs)} jobs)" if len(jobs) > 1 else fault


def _fault(log: Path | None, since: float) -> str | None:
    """Return the fault in the log of a job, None for a job that was ended from outside."""
    if log is None or not log.is_file() or log.stat().st_mtime < since:
        return None
    text = log.read_text(errors="replace")
    return _TRACEBACK.split(text)[0].rstrip("\n") if _FAULT.match(text) else None
