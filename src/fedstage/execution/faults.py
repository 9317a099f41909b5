"""One line for a fault: of the Snakefile, or of failed jobs, last and below Snakemake's own."""

import re
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import current_thread, main_thread
from types import TracebackType
from typing import Any

from fedstage.errors import FedstageError

#: The line of a run that Ctrl-C or SIGTERM has ended.
INTERRUPTED = "fedstage: interrupted; the same command goes on"

_FAULT = re.compile(r"fedstage \w+: ")
_MOST = 5
_NO_MESSAGE = "it has no message of its own; what it has printed is above"


def explained(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns, or end the process with the one line of its error.

    An exception of Snakemake's would stand between its place in the Snakefile and the way there.
    """
    try:
        return function(*arguments)
    except FedstageError as error:
        sys.exit(f"fedstage: {error}")


def expect_interrupts() -> None:
    """Let Ctrl-C and SIGTERM end this process with one line, until a run handles them."""
    sys.excepthook = explain_interrupt
    in_main = current_thread() is main_thread()
    if in_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def explain_interrupt(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print one line in place of the traceback of Ctrl-C; in the place of `sys.excepthook`."""
    if issubclass(kind, KeyboardInterrupt):
        print(INTERRUPTED, file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


def count_failed(failed: Iterable[tuple[str, Path | None]], since: float) -> int:
    """Return how many of the jobs that an interrupted run lists as failed have a fault."""
    return sum(_fault(log, since) is not None for _, log in failed)


def faults(
    failed: Iterable[tuple[str, Path | None]], since: float, interrupted: bool = False
) -> list[str]:
    """Return each different fault of failed jobs: the rule and the log of a job, and the fault.

    Parameters
    ----------
    failed : iterable of (str, Path or None)
        The rule and the log of each job.
    since : float
        When the run began; a log that is older tells of another run.
    interrupted : bool
        Whether the run was, which ends jobs without a message: they are no faults.
    """
    told: dict[str, str] = {}
    for rule, log in failed:
        fault = _fault(log, since)
        if fault or not interrupted:
            told.setdefault(fault or _NO_MESSAGE, f"{rule} failed: {log or 'no log'}")
    lines = [line for text, where in sorted(told.items())[:_MOST] for line in (where, text)]
    rest = len(told) - _MOST
    more = [f"and {rest} more faults, in the log of this run in .snakemake/log"] if rest > 0 else []
    return [*lines, *more, *([INTERRUPTED] if interrupted else [])]


def _fault(log: Path | None, since: float) -> str | None:
    """Return the fault that a job has written into its log; one ended from outside has none."""
    if log is None or not log.is_file() or log.stat().st_mtime < since:
        return None
    text = log.read_text(errors="replace")
    return text.rstrip("\n") if _FAULT.match(text) else None
