"""Standard error of this process and of the programs that it starts, line by line."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from typing import TextIO

_END = "\0"  # ends the last line before `restore`, and is in no other
_LAST = 60.0  # seconds at most until that line is read, on a busy machine


class Diverted:
    """File 2, until `restore`: each line that is written there goes to a function, in a thread.

    Jobs inherit file 2, so their output does not fall into a line that is being redrawn. `original`
    is where file 2 led before.

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
        self._read_all = Event()
        Thread(target=_read, args=(source, take, self._read_all), daemon=True).start()

    def restore(self) -> None:
        """Restore file 2, after the lines that are still on their way."""
        with suppress(OSError, ValueError):
            sys.stderr.flush()
        with suppress(OSError):
            os.write(2, f"{_END}\n".encode())
        os.dup2(self.original.fileno(), 2)
        self._read_all.wait(_LAST)


def _read(source: int, take: Callable[[str], None], read_all: Event) -> None:
    """Read to the end of the file, which programs that are still running may keep open."""
    with os.fdopen(source, encoding="utf-8", errors="backslashreplace") as lines:
        for line in lines:
            text = line.rstrip("\r\n")
            if text != _END:
                take(text.removesuffix(_END))
            if text.endswith(_END):
                read_all.set()
