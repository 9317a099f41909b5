"""The process of a command that a user or a rule has started: any locale, and any output."""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from typing import TextIO

from fedstage.execution.client import PYTHON, open_standard_files


def at_terminal(command: Callable[[Sequence[str]], int]) -> int:
    """Run a command with the arguments of this process; return its exit code.

    Names and texts are UTF-8, also where the locale is none. Output may be closed, or be a pipe
    whose reader has seen enough, after which the code is that of other programs, 128 + SIGPIPE.
    """
    if sys.getfilesystemencoding() != "utf-8":
        os.execv(sys.executable, [*PYTHON, "fedstage.execution.cli", *sys.argv[1:]])
    open_standard_files()
    sys.stdout = _ready(sys.stdout)
    sys.stderr = _ready(sys.stderr)
    try:
        code = command(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), 1
        )  # else the end of the process would flush again
        return 128 + signal.SIGPIPE
    return code


def _ready(stream: TextIO | None) -> TextIO:
    """Return a stream that can be written to, and that no letter stops."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream
