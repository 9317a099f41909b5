"""The output of Snakemake: one line that is redrawn, and no lists of hundreds of jobs."""

import atexit
import logging
import sys
from logging import LogRecord
from typing import TYPE_CHECKING

from snakemake.logging import ColorizingTextHandler, DefaultFormatter
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from fedstage.settings.validation import as_typed

if TYPE_CHECKING:
    from fedstage.execution.live import Live

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

    A run is shown in one line (`live`), and a dry run by the number of jobs of each rule. The
    options -p, --verbose, --debug-dag and --quiet print what Snakemake itself would.
    """

    writes_to_stream = True
    writes_to_file = False
    has_filter = False  # so Snakemake adds its own
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        common = self.common_settings
        self._live: Live | None = None
        self._held: list[LogRecord] = []
        self._planned = self._jobs = self._explained = False
        self._short = not (
            common.printshellcmds or common.verbose or common.debug_dag or common.quiet
        )
        self._terminal = ColorizingTextHandler(
            nocolor=common.nocolor,
            stream=sys.stdout if common.stdout else sys.stderr,
            formatter=DefaultFormatter(common.quiet, common.show_failed_logs),
        )
        if self._short and not common.dryrun and sys.stderr is not None:
            self._live = _live()
        atexit.register(self.close)  # if Snakemake ends without closing it

    def emit(self, record: LogRecord) -> None:
        """Print a message, unless it is left out."""
        if record.msg == "None":  # the queue before a plugin turns a missing message into text
            record.msg = None
        if self._live:
            self._live.follow(record)
        if not self._short or self._is_shown(record):
            self._print(record)

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
            return not (self._explained and _only_adds(record))
        if event == LogEvent.RUN_INFO:
            return first and bool(self.common_settings.dryrun)
        if event is None and first:
            self._held.append(record)
        return hasattr(record, "explains_failures") or str(record.msg).startswith(_OF_INTERRUPTS)

    def _print(self, record: LogRecord) -> None:
        if self._live is None:
            self._terminal.emit(record)
        elif text := self._terminal.format(record):
            self._live.show(self._terminal.decorate(record, text))

    def close(self) -> None:
        """Print how to see the jobs that a dry run has left out, and let go of the terminal."""
        if not self._planned:
            for record in self._held:
                self._print(record)
        if self._live:
            self._live.close()
        elif self._short and self._jobs:
            command = as_typed("snakemake", "-n", "-p")
            self._terminal.stream.write(f"fedstage: {command} lists every job, with its reason\n")
        self._held, self._jobs = [], False
        super().close()


def _live() -> "Live":
    """Return a view of a run; every call of snakemake loads this plugin, and most need no view."""
    from fedstage.execution.live import Live

    return Live()


def _only_adds(record: LogRecord) -> bool:
    """Whether a message only adds that jobs have failed."""
    return any(text in str(record.msg) for text in _OF_FAILED_JOBS)
