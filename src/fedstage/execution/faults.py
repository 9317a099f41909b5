"""One line for a fault: of the Snakefile, or of failed jobs, last and below Snakemake's own."""

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from fedstage.errors import FedstageError

#: The line of a run that Ctrl-C or SIGTERM has ended.
INTERRUPTED = "fedstage: interrupted; the same command goes on"

_FAULT = re.compile(r"fedstage \w+: ")
_MOST = 5


def explained(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns, or end the process with the one line of its error.

    An exception of Snakemake's would stand between its place in the Snakefile and the way there.
    """
    try:
        return function(*arguments)
    except FedstageError as error:
        sys.exit(f"fedstage: {error}")


def explain_interrupt(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print one line in place of the traceback of Ctrl-C; in the place of `sys.excepthook`."""
    if issubclass(kind, KeyboardInterrupt):
        print(INTERRUPTED, file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


def faults(
    failed: Iterable[tuple[str, Path | None]], since: float, interrupted: bool = False
) -> list[str]:
    """Return one line for each different fault of failed jobs.

    Parameters
    ----------
    failed : iterable of (str, Path or None)
        The rule and the log of each job.
    since : float
        When the run began; a log that is older tells of another run.
    interrupted : bool
        Whether the run was, which ends jobs without a message: they are no faults.
    """
    told = sorted({line for rule, log in failed for line in _told(rule, log, since)})
    if interrupted:
        told = [line for line in told if _FAULT.match(line)]
    rest = len(told) - _MOST
    more = [f"and {rest} more faults, see above"] if rest > 0 else []
    return [*told[:_MOST], *more, *([INTERRUPTED] if interrupted else [])]


def _told(rule: str, log: Path | None, since: float) -> list[str]:
    """Return the lines of a log that is a fault; a job that was ended from outside has none."""
    if log is None or not log.is_file() or log.stat().st_mtime < since:
        return [f"{rule}: failed without a message of its own, see above"]
    lines = log.read_text(errors="replace").splitlines()
    if lines and _FAULT.match(lines[0]):
        return lines
    return [f"{rule}: failed, see above and {log}"]
