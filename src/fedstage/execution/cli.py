"""The command line: ``fedstage run STAGE FILE NAME=VALUE ...``, and commands about results.

A `FedstageError`, or a file that cannot be opened, ends in one line, which is shown and recorded;
for any other error the job's record has the traceback as well.
"""

import os
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from fedstage.errors import FedstageError
from fedstage.execution.commands import run_command
from fedstage.execution.imported import planned_source
from fedstage.execution.jobs import job_of, write_failure, write_record
from fedstage.execution.notes import QUIET, Timings, noticing, process_age
from fedstage.execution.pool import open_standard_files
from fedstage.settings.plugins import describe_error, line_of_plugin
from fedstage.storage.files import writing
from fedstage.storage.yaml_files import load_project_plugins

_PACKAGE = Path(__file__).parents[1]


def main(argv: Sequence[str] | None = None, started: float | None = None) -> int:
    """Run one command; return its exit code.

    `argv` defaults to the arguments of this process. `started` is the start of the command on the
    clock of `time.perf_counter`, by default the start of this process.
    """
    if argv is None:
        return _at_terminal()
    match list(argv):
        case ["run", stage, file, *words] if not stage.startswith("-"):
            return run(stage, file, *words, started=started)
    return run_command(argv)


def _at_terminal() -> int:
    """Run the command of this process's arguments; return its exit code.

    If output is closed, or is a pipe whose reader has ended, the exit code is 128 + SIGPIPE, as in
    other programs; after Ctrl-C it is 128 + SIGINT.
    """
    open_standard_files()
    sys.stdout = _ready(sys.stdout)
    sys.stderr = _ready(sys.stderr)
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)  # else the end of the process would flush again
        return 128 + signal.SIGPIPE
    return code


def _ready(stream: TextIO | None) -> TextIO:
    """Return a stream that can be written to, and that accepts any character."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream


def run(stage: str, file: str, *words: str, started: float | None = None) -> int:
    """Run a job, and write its record. Return its exit code.

    `fedstage.execution.jobs` says what the words of ``fedstage run`` mean.
    """
    if started is None:
        started = time.perf_counter() - process_age()
    command = shlex.join(["fedstage", "run", stage, file, *words])
    record: Path | None = None
    timings = Timings(startup=time.perf_counter() - started)
    since = time.time_ns() - int((time.perf_counter() - started) * 1e9)
    try:
        load_project_plugins()
        job = job_of(stage, Path(file), words)
        record = Path(job.record)
        with writing() as written, noticing(stage, sys.stderr) as notices:
            source = planned_source(job, since)
            parts = job.run()
            planned_source(job, since)
        write_record(job, command, source, timings.finish(), parts, written, notices)
    except (FedstageError, OSError) as error:
        told = "".join(f"fedstage {stage}: {line}\n" for line in str(error).splitlines())
        return fail(record, command, told)
    except Exception as error:  # a bug, here or in a plugin
        if record is None:
            raise
        told = f"fedstage {stage}: {_of_bug(error)}\n"
        return fail(record, command, told, traceback.format_exc())
    return 0


def fail(record: Path | None, command: str, error: str, details: str = "") -> int:
    """Write the error of a job into its record, and print it if that is not done, or not quiet."""
    recorded = record is not None and write_failure(record, command, error, details)
    if not recorded or QUIET not in os.environ:
        sys.stderr.write(error)
    return 1


def _of_bug(error: Exception) -> str:
    """Return the last line of a plugin, or else of this package, behind an error, and the error."""
    return f"{line_of_plugin(error) or _line_of_package(error)}{describe_error(error)}"


def _line_of_package(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(_PACKAGE)]
    if not own:
        return ""
    return f"{Path(own[-1].filename).relative_to(_PACKAGE.parent)}, line {own[-1].lineno}: "


if __name__ == "__main__":
    sys.exit(main())
