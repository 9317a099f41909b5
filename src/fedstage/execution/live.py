"""A run in one line: progress, running jobs, how training goes, and the time left."""

import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from logging import LogRecord
from pathlib import Path
from threading import Event, RLock, Thread
from typing import Any, TextIO

from snakemake_interface_logger_plugins.common import LogEvent

from fedstage.execution.faults import recorded_error
from fedstage.execution.progress import (
    Jobs,
    Progress,
    describe_shortly,
    ending,
    seconds_of,
    take_in,
)

CLEAR = "\r\x1b[K"

_REDRAWN = 1.0  # seconds, on a terminal
_REPEATED = 60.0  # seconds, elsewhere
_WIDTH = 80  # characters of a terminal that does not state it
#: The output of stages: warnings, how training goes, and errors, which their logs have as well.
_PRINTED = re.compile(r"fedstage \w+: (?:(warning: )|round \d+[^:]*: ([^,(]*))?")

_END = "\0"  # ends the last line of `Diverted`, and is in no other
_LAST = 60.0  # seconds at most until that line is read, on a busy machine


class Live:
    """What a run of snakemake shows while it goes on; safe to call from several threads.

    On a terminal this is a line that is redrawn, elsewhere one line per minute. Finished results,
    warnings, and other output stay above it.
    """

    def __init__(self) -> None:
        self._progress = Progress()
        self._jobs: Jobs = {}
        self._known: dict[str, float | None] = {}
        self._notes: dict[str, str] = {}
        self._faults: dict[str, None] = {}
        self._logs: list[str] = []
        self._lock, self._over = RLock(), Event()
        self._diverted = Diverted(self.printed)
        self._stream: TextIO = self._diverted.original
        self._terminal = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._clock = Thread(target=self._repeat, daemon=True)
        self._clock.start()

    @property
    def planned(self) -> bool:
        """Whether it is known which jobs run."""
        return bool(self._progress.planned)

    def follow(self, record: LogRecord) -> None:
        """Process what a message of Snakemake reports about jobs."""
        with self._lock:
            for path in take_in(self._progress, self._jobs, record, datetime.now()):
                self.show(path)
            self._logs += _logs_of(record)

    def show(self, text: str) -> None:
        """Print lines that stay."""
        with self._lock:
            self._write(f"{CLEAR if self._terminal else ''}{text}\n")
            if self._terminal and not self._over.is_set():
                self._write(self._line())

    def printed(self, line: str) -> None:
        """Process a line that a job, or this process, has printed."""
        found = _PRINTED.match(line)
        with self._lock:
            if found is None or found[1]:
                self.show(line)
            elif found[2]:
                self._notes["accuracy" if "accuracy" in line else "loss"] = f"last {found[2]}"
            else:
                self._faults[line] = None

    def close(self) -> None:
        """End the view, leaving the number of finished jobs, and faults that no log has."""
        if self._over.is_set():
            return
        self._over.set()
        self._clock.join()
        self._diverted.restore()
        with self._lock:
            told = {line for log in self._logs for line in recorded_error(Path(log))}
            for line in self._faults:
                if line not in told:
                    self.show(line)
            if self._terminal:
                self._write(CLEAR)
            if self.planned:
                self._write(f"{ending(self._progress, datetime.now())}\n")
            self._stream.close()

    def _repeat(self) -> None:
        every = _REDRAWN if self._terminal else _REPEATED
        while not self._over.wait(every):
            with self._lock:
                if self._terminal:
                    self._write(self._line())
                elif self.planned:
                    self._write(f"{self._words()}\n")

    def _line(self) -> str:
        """Return the line for the terminal, shortened to its width."""
        total = sum(self._progress.planned.values())
        try:
            width = os.get_terminal_size(self._stream.fileno()).columns or _WIDTH
        except OSError:
            width = _WIDTH
        length = width // 8
        bar = "#" * (length * self._progress.done // max(1, total))
        return CLEAR + fitting(f"[{bar:.<{length}}] {self._words()}", width - 1)

    def _words(self) -> str:
        seconds = seconds_of(self._progress, Path(), self._known)
        note = self._notes.get("accuracy") or self._notes.get("loss", "")
        return describe_shortly(self._progress, datetime.now(), seconds, note)

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # nobody reads it any more
            self._stream.write(text)
            self._stream.flush()


def fitting(line: str, width: int) -> str:
    """Return a line without the parts, between semicolons, for which there is no room."""
    kept, *parts = line.split("; ")
    for part in parts:
        if len(kept) + len("; ") + len(part) <= width:
            kept += f"; {part}"
    return kept[:width]


def _logs_of(record: LogRecord) -> list[str]:
    """Return the logs of failed jobs."""
    about: Any = record.__dict__
    if about.get("event") == LogEvent.GROUP_ERROR:
        return [log for job in about["job_error_info"] for log in job["log"]]
    return list(about["log"]) if about.get("event") == LogEvent.JOB_ERROR else []


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
