"""Standard error of this process and of the programs that it starts, line by line."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TextIO

_LAST = 1.0  # seconds for the rest, if a program that is still running keeps the file open


class Diverted:
    """File 2, until `restore`: each line that is written there goes to a function, in a thread.

    Jobs inherit file 2, so that what they print does not fall into a line that is being redrawn.
    `original` is where file 2 led before.

    Raises
    ------
    OSError
        If file 2 is closed.
    """

    def __init__(self, take: Callable[[str], None]) -> None:
        sys.stderr.flush()
        kept = os.dup(2)
        self.original: TextIO = os.fdopen(kept, "w", encoding="utf-8", errors="backslashreplace")
        source, target = os.pipe()
        os.dup2(target, 2)
        os.close(target)
        self._reader = Thread(target=_read, args=(source, take), daemon=True)
        self._reader.start()

    def restore(self) -> None:
        """Let file 2 lead where it led, after the lines that are still on their way."""
        with suppress(OSError, ValueError):
            sys.stderr.flush()
        os.dup2(self.original.fileno(), 2)
        self._reader.join(_LAST)


def _read(source: int, take: Callable[[str], None]) -> None:
    with os.fdopen(source, encoding="utf-8", errors="backslashreplace") as lines:
        for line in lines:
            take(line.rstrip("\r\n"))
