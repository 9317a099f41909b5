"""What Snakemake prints: its own messages, without lists of hundreds of files."""

import sys
from logging import LogRecord

from snakemake.logging import ColorizingTextHandler, DefaultFormatter
from snakemake.settings.enums import Quietness
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

_MORE = "fedstage: snakemake -n -p lists every job, with its reason\n"
_OF_A_JOB = (LogEvent.JOB_INFO, LogEvent.GROUP_INFO)


class LogHandler(LogHandlerBase):
    """A logger plugin of Snakemake, which prints what Snakemake itself would, in fewer lines.

    A run prints no reasons of jobs and not how many it starts; its log file has both. A dry run
    prints how many jobs of each rule there are, once, and no single job, unless an option asks for
    more or less.
    """

    writes_to_stream = True
    writes_to_file = False
    has_filter = False  # so Snakemake adds its own
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        common = self.common_settings
        quiet = set(common.quiet or ())
        self._short = common.dryrun and not (
            common.printshellcmds or common.verbose or common.debug_dag or quiet
        )
        self._counts = self._jobs = 0
        self._terminal = ColorizingTextHandler(
            nocolor=common.nocolor,
            stream=sys.stdout if common.stdout else sys.stderr,
            formatter=DefaultFormatter(
                quiet if common.dryrun else quiet | {Quietness.REASON}, common.show_failed_logs
            ),
        )

    def emit(self, record: LogRecord) -> None:
        """Print a message, unless it is left out."""
        event = getattr(record, "event", None)
        self._counts += event == LogEvent.RUN_INFO
        self._jobs += event in _OF_A_JOB
        again = event == LogEvent.RUN_INFO and self._counts > 1
        if event == LogEvent.JOB_STARTED or (self._short and (again or event in _OF_A_JOB)):
            return
        if record.msg == "None":  # the queue before a plugin makes text of a missing message
            record.msg = None
        self._terminal.emit(record)

    def close(self) -> None:
        """Print how to see the jobs that a dry run has left out."""
        if self._short and self._jobs:
            self._terminal.stream.write(_MORE)
            self._jobs = 0
        super().close()
