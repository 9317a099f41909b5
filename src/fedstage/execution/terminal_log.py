"""What a run prints: how many jobs are done, and one line for a fault.

There are no lists of hundreds of jobs. Faults are of the Snakefile, or of failed jobs; these come
last, below Snakemake's own.
"""

import atexit
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from logging import LogRecord
from pathlib import Path
from typing import Any

from snakemake.logging import ColorizingTextHandler, DefaultFormatter
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from fedstage.errors import FedstageError
from fedstage.execution.notes import QUIET
from fedstage.settings.validation import as_typed
from fedstage.storage.files import load_json
from fedstage.storage.provenance import ERROR

_EVERY = 60.0  # seconds between two lines about progress; on a terminal
_ON_TERMINAL = 5.0
#: Messages of Snakemake that the end of a run explains better.
_OF_FAILED_JOBS = (
    "returned non-zero exit status",
    "died with <Signals",  # a shell that Ctrl-C reaches before its command has started
    "Exiting because a job execution failed",
    "At least one job did not complete successfully",
)
#: How Snakemake answers Ctrl-C and SIGTERM.
_OF_INTERRUPTS = ("Terminating processes on user request", "Will exit after finishing")


class LogHandler(LogHandlerBase):
    """A logger plugin of Snakemake, which prints little; Snakemake's log file has everything.

    A run is shown by the number of jobs that are done, now and then, and a dry run by the number of
    jobs of each rule. Of what jobs tell only warnings are shown: their records have the rest. The
    options -p, --verbose, --debug-dag and --quiet print what Snakemake itself would.
    """

    writes_to_stream = True
    writes_to_file = False
    has_filter = False  # so Snakemake adds its own
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        common = self.common_settings
        self._held: list[LogRecord] = []
        self._planned = self._jobs = self._explained = False
        self._total = self._done = self._failed = 0
        self._begun = self._told = time.monotonic()
        self._short = not (
            common.printshellcmds or common.verbose or common.debug_dag or common.quiet
        )
        self._counts = self._short and not common.dryrun
        if self._counts:
            os.environ[QUIET] = "1"
        self._terminal = ColorizingTextHandler(
            nocolor=common.nocolor,
            stream=sys.stdout if common.stdout else sys.stderr,
            formatter=DefaultFormatter(common.quiet, common.show_failed_logs),
        )
        atexit.register(self.close)  # if Snakemake ends without closing it

    def emit(self, record: LogRecord) -> None:
        """Print a message, unless it is left out."""
        if record.msg == "None":  # the queue before a plugin turns a missing message into text
            record.msg = None
        if not self._short or self._is_shown(record):
            self._terminal.emit(record)
        self._count(record)

    def _is_shown(self, record: LogRecord) -> bool:
        """Whether a message is printed at once; some are held until it is clear that no job runs.

        If none does, the message is the answer to another command, such as --unlock.
        """
        event = getattr(record, "event", None)
        first = not self._planned
        self._planned |= event == LogEvent.RUN_INFO
        self._jobs |= event in (LogEvent.JOB_INFO, LogEvent.GROUP_INFO)
        # The Snakefile, unless it is a module, explains at the end which jobs have failed.
        self._explained |= hasattr(record, "explains_failures")
        if event in (LogEvent.JOB_ERROR, LogEvent.GROUP_ERROR):
            return not self._explained or bool(self.common_settings.show_failed_logs)
        if record.levelno >= logging.WARNING:
            self._held = []
            only_adds = any(text in str(record.msg) for text in _OF_FAILED_JOBS)
            return not (self._explained and only_adds)
        if event == LogEvent.RUN_INFO:
            return first and bool(self.common_settings.dryrun)
        if event is None and first:
            self._held.append(record)
        return hasattr(record, "explains_failures") or str(record.msg).startswith(_OF_INTERRUPTS)

    def _count(self, record: LogRecord) -> None:
        """Count the jobs that are done; print how many, if the last such line is a while ago."""
        event, about = getattr(record, "event", None), record.__dict__
        if event == LogEvent.RUN_INFO:
            self._total = about["stats"]["total"]
        elif event == LogEvent.JOB_ERROR:
            self._failed += 1
        elif event == LogEvent.GROUP_ERROR:
            self._failed += len(about["job_error_info"])
        elif event == LogEvent.JOB_FINISHED:
            self._done += 1
            every = _ON_TERMINAL if self._terminal.is_tty else _EVERY
            if self._counts and time.monotonic() - self._told > every:
                self._tell()

    def _tell(self) -> None:
        self._told = time.monotonic()
        failed = f", {self._failed} failed" if self._failed else ""
        taken = timedelta(seconds=round(self._told - self._begun))
        self._print(f"{self._done:,} of {self._total:,} jobs done{failed}, in {taken}")

    def _print(self, text: str) -> None:
        self._terminal.emit(logging.makeLogRecord({"msg": text, "levelno": logging.INFO}))

    def close(self) -> None:
        """Print what is done, or how to see the jobs that a dry run has left out."""
        if not self._planned:
            for record in self._held:
                self._terminal.emit(record)
        elif self._counts:
            self._tell()
        elif self._short and self._jobs:
            command = as_typed("snakemake", "-n", "-p")
            self._print(f"fedstage: {command} lists every job, with its reason")
        self._held, self._jobs, self._counts = [], False, False
        super().close()


# --- faults ---------------------------------------------------------------------------------------

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
        cause = _OF_THE_JOB.sub(r"\1", text)
        told.setdefault(cause, []).append((text, f"{rule} failed: {log or 'no log'}"))
    # An error is the last line; if there are several, the one of the most jobs.
    groups = sorted(told.values(), key=lambda jobs: (jobs[0][0] == _NO_MESSAGE, -len(jobs), jobs))
    lines = [line for jobs in reversed(groups[:_MOST]) for line in _summary(jobs)]
    rest = len(groups) - _MOST
    more = [f"{rest} more in the log of this run, in .snakemake/log"] if rest > 0 else []
    return [*more, *lines]


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
