"""The command line: ``fedstage run STAGE FILE NAME=VALUE ...``, and commands about results."""

import os
import signal
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import TextIO

from fedstage.execution.commands import run_command
from fedstage.execution.jobs import run
from fedstage.execution.pool import open_standard_files


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


if __name__ == "__main__":
    sys.exit(main())
