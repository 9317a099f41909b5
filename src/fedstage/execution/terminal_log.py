"""The output of Snakemake: how many jobs are done, and no lists of hundreds of jobs."""

import atexit
import logging
import sys
import time
from collections.abc import Iterable
from logging import LogRecord

from snakemake.logging import ColorizingTextHandler, DefaultFormatter
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from fedstage.settings.validation import as_typed

#: Messages of Snakemake that the end of a run explains better.
_OF_FAILED_JOBS = (
    "returned non-zero exit status",
    "died with <Signals",  # a shell that Ctrl-C reaches before its command has started
    "Exiting because a job execution failed",
    "At least one job did not complete successfully",
)
#: How Snakemake answers Ctrl-C and SIGTERM.
_OF_INTERRUPTS = ("Terminating processes on user request", "Will exit after finishing")
_EVERY = 10.0  # seconds at least between two lines on how many jobs are done
_READABLE = ((".md", ".png"), (".html",), (".csv",))  # the first that a job makes is shown


class LogHandler(LogHandlerBase):
    """A logger plugin of Snakemake, which prints little; Snakemake's log file has everything.

    Of a run it prints how many jobs are done, at most every ten seconds, and finished tables and
    figures; of a dry run the number of jobs of each rule. The options -p, --verbose, --debug-dag
    and --quiet print what Snakemake itself would.
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
        self._short = not (
            common.printshellcmds or common.verbose or common.debug_dag or common.quiet
        )
        self._terminal = ColorizingTextHandler(
            nocolor=common.nocolor,
            stream=sys.stdout if common.stdout else sys.stderr,
            formatter=DefaultFormatter(common.quiet, common.show_failed_logs),
        )
        self._counts = self._short and not common.dryrun
        self._outputs = dict[int, list[str]]()  # of running jobs, by their numbers
        self._total = self._done = self._failed = 0
        self._begun = self._told = time.monotonic()
        atexit.register(self.close)  # if Snakemake ends without closing it

    def emit(self, record: LogRecord) -> None:
        """Print a message, unless it is left out."""
        if record.msg == "None":  # the queue before a plugin turns a missing message into text
            record.msg = None
        if self._counts:
            self._count(record)
        if not self._short or self._is_shown(record):
            self._terminal.emit(record)

    def _count(self, record: LogRecord) -> None:
        """Take in what a message says about jobs; print results, and now and then the counts."""
        about = record.__dict__
        match about.get("event"):
            case LogEvent.RUN_INFO:
                self._total = sum(n for rule, n in about["stats"].items() if rule != "total")
            case LogEvent.JOB_INFO:
                self._outputs[about["jobid"]] = about["output"]
            case LogEvent.JOB_FINISHED:
                self._done += 1
                for path in readable(self._outputs.pop(about["job_id"], ())):
                    self._write(path)
                if time.monotonic() >= self._told + _EVERY and self._done < self._total:
                    self._told = time.monotonic()
                    self._write(self._counted())
            case LogEvent.JOB_ERROR:
                self._failed += 1
            case LogEvent.GROUP_ERROR:
                self._failed += len(about["job_error_info"])

    def _counted(self) -> str:
        """Write how many jobs are done: ``3 of 8 jobs done, 1 failed, after 45 s``."""
        failed = f", {self._failed} failed" if self._failed else ""
        taken = in_words(time.monotonic() - self._begun)
        return f"{self._done} of {self._total} jobs done{failed}, after {taken}"

    def _write(self, line: str) -> None:
        self._terminal.stream.write(f"{line}\n")
        self._terminal.stream.flush()

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

    def close(self) -> None:
        """Print how to see the jobs that a dry run has left out, and let go of the terminal."""
        if not self._planned:
            for record in self._held:
                self._terminal.emit(record)
        if self._counts and self._total:
            self._write(self._counted())
        elif self._short and self._jobs:
            command = as_typed("snakemake", "-n", "-p")
            self._write(f"fedstage: {command} lists every job, with its reason")
        self._held, self._jobs, self._total = [], False, 0
        super().close()


def readable(outputs: Iterable[str]) -> list[str]:
    """Return the files of a job that users read: tables and figures, each in one format."""
    for suffixes in _READABLE:
        if found := [path for path in outputs if path.endswith(suffixes)]:
            return found
    return []


def in_words(seconds: float) -> str:
    """Write seconds: ``45 s``, ``3 min 05 s``, ``2 h 10 min``."""
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def _only_adds(record: LogRecord) -> bool:
    """Whether a message only adds that jobs have failed."""
    return any(text in str(record.msg) for text in _OF_FAILED_JOBS)
