"""A run in one line: progress, running jobs, how training goes, and the time left."""

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from logging import LogRecord
from pathlib import Path
from threading import Event, RLock, Thread
from typing import Any, TextIO

from snakemake_interface_logger_plugins.common import LogEvent

from fedstage.execution.diverted import Diverted
from fedstage.execution.snakemake_log import Progress
from fedstage.execution.time_left import in_words, seconds_left, seconds_of

CLEAR = "\r\x1b[K"

_REDRAWN = 1.0  # seconds, on a terminal
_REPEATED = 60.0  # seconds, elsewhere
_WIDTH = 80  # characters of a terminal that does not state it
_READABLE = ((".md", ".png"), (".html",), (".csv",))  # the first that a job makes is shown
#: The output of stages: warnings, how training goes, and errors, which their logs have as well.
_PRINTED = re.compile(r"fedstage \w+: (?:(warning: )|round \d+[^:]*: ([^,(]*))?")

#: Running jobs: rule and outputs, by their numbers.
Jobs = dict[int, tuple[str, list[str]]]


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
            told = {line for log in self._logs for line in _lines(log)}
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


def take_in(progress: Progress, jobs: Jobs, record: LogRecord, now: datetime) -> list[str]:
    """Update the progress and the running jobs by a message; return results that are finished."""
    about: Any = record.__dict__
    match about.get("event"):
        case LogEvent.RUN_INFO:
            stats = about["stats"].items()
            progress.planned = {rule: count for rule, count in stats if rule != "total"}
        case LogEvent.RESOURCES_INFO:
            progress.cores = about.get("cores", progress.cores)
        case LogEvent.JOB_INFO:
            progress.started = progress.started or now
            message = about["rule_msg"] or about["rule_name"]
            progress.running[about["jobid"]] = now, message
            jobs[about["jobid"]] = about["rule_name"], about["output"]
        case LogEvent.JOB_FINISHED:
            begun, _ = progress.running.pop(about["job_id"], (now, ""))
            rule, outputs = jobs.pop(about["job_id"], ("", []))
            progress.finished.setdefault(rule, []).append((now - begun).total_seconds())
            return readable(outputs)
        case LogEvent.JOB_ERROR:
            progress.running.pop(about["jobid"], None)
            progress.failed.append(about["rule_name"])
        case LogEvent.GROUP_ERROR:
            for job in about["job_error_info"]:
                progress.running.pop(job["jobid"], None)
                progress.failed.append(job["rule_name"])
    return []


def readable(outputs: Iterable[str]) -> list[str]:
    """Return the files of a job that users read: tables and figures, each in one format."""
    for suffixes in _READABLE:
        if found := [path for path in outputs if path.endswith(suffixes)]:
            return found
    return []


def describe_shortly(
    progress: Progress, now: datetime, seconds: Mapping[str, float | None], note: str
) -> str:
    """Return one line: jobs, time left, what runs, how training goes. `seconds` are per rule."""
    if not progress.planned:
        return "planning"
    failed = [f"{len(progress.failed)} failed"] if progress.failed else []
    running = [message.partition(" (")[0] for _, message in progress.running.values()]
    more = f", and {len(running) - 1} more" if len(running) > 1 else ""
    left, unknown = seconds_left(progress, now, seconds)
    about = "at least" if unknown else "about"
    time = f"{about} {in_words(left)} left" if round(left) or not unknown else ""
    now_running = [f"{message}{more}" for message in running[:1]]
    return "; ".join(filter(None, [_done(progress), *failed, time, *now_running, note]))


def fitting(line: str, width: int) -> str:
    """Return a line without the parts, between semicolons, for which there is no room."""
    kept, *parts = line.split("; ")
    for part in parts:
        if len(kept) + len("; ") + len(part) <= width:
            kept += f"; {part}"
    return kept[:width]


def ending(progress: Progress, now: datetime) -> str:
    """Return the line that stays: how many jobs are done, and how long they took."""
    taken = (now - progress.started).total_seconds() if progress.started else 0.0
    failed = f", {len(progress.failed)} failed" if progress.failed else ""
    return f"{_done(progress)} done{failed}, in {in_words(taken)}"


def _done(progress: Progress) -> str:
    return f"{progress.done} of {sum(progress.planned.values())} jobs"


def _logs_of(record: LogRecord) -> list[str]:
    """Return the logs of failed jobs."""
    about: Any = record.__dict__
    if about.get("event") == LogEvent.GROUP_ERROR:
        return [log for job in about["job_error_info"] for log in job["log"]]
    return list(about["log"]) if about.get("event") == LogEvent.JOB_ERROR else []


def _lines(log: str) -> list[str]:
    try:
        return Path(log).read_text(errors="replace").splitlines()
    except OSError:
        return []
