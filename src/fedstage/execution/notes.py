"""What is noted of a stage while it runs, for its record and never in an artefact.

Messages are also shown on the terminal at once: warnings, and the course of training, which are
losses of rounds and validation accuracies. The megabytes are the peaks of the process's memory and
of tensors on a GPU.
"""

import logging
import os
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import StringIO
from pathlib import Path
from typing import Any, TextIO

#: The variable with which `fedstage.execution.terminal_log` asks jobs to print warnings only.
QUIET = "FEDSTAGE_QUIET"


class _Line(logging.Formatter):
    """A format of lines in which warnings are marked."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        if record.levelno >= logging.WARNING:
            record.message = f"warning: {record.message}"
        return super().formatMessage(record)


class Notices(StringIO):
    """Lines of notices, and the numbers of each distillation that they tell of, a row each."""

    def __init__(self) -> None:
        super().__init__()
        self.distilled: list[dict[str, float]] = []

    def keep(self, record: logging.LogRecord) -> bool:
        """Keep the numbers of a notice, if it has any."""
        if row := getattr(record, "distilled", None):
            self.distilled.append(row)
        return True


@contextmanager
def noticing(command: str, stream: TextIO | None = None) -> Iterator[Notices]:
    """Yield the text to which every notice of the package's loggers is added, a line each.

    With a `stream`, each notice is also written there at once; only warnings, where jobs are quiet.
    """
    text, logger = Notices(), logging.getLogger("fedstage")
    handlers = [logging.StreamHandler(target) for target in (text, stream) if target is not None]
    handlers[0].addFilter(text.keep)
    if QUIET in os.environ:
        handlers[-1].setLevel(logging.WARNING if stream else logging.INFO)
    level = logger.level
    logger.setLevel(logging.INFO)
    for handler in handlers:
        handler.setFormatter(_Line(f"fedstage {command}: %(message)s"))
        logger.addHandler(handler)
    try:
        yield text
    finally:
        logger.setLevel(level)
        for handler in handlers:
            logger.removeHandler(handler)


class Timings:
    """A stop-watch for one stage, with its peaks of memory; earlier stages do not count.

    `startup` are the seconds until the stage function starts.
    """

    def __init__(self, startup: float) -> None:
        with suppress(OSError):  # not allowed: the peak is then that of the process
            Path("/proc/self/clear_refs").write_text("5")
        forget_peak()
        self.startup = startup
        self._begin = time.perf_counter()

    def finish(self) -> dict[str, float]:
        """Stop the watch; return seconds and megabytes for the job's record."""
        compute = time.perf_counter() - self._begin
        seconds = {"startup_s": round(self.startup, 3), "compute_s": round(compute, 3)}
        on_gpu = {"peak_gpu_memory_mb": taken} if (taken := most_taken()) else {}
        return seconds | {"peak_memory_mb": peak_mb()} | on_gpu


def peak_mb() -> int:
    """Return the peak of resident memory: VmHWM, which can be reset, or the peak of the process."""
    rows = Path("/proc/self/status").read_text().splitlines()
    peaks = (int(row.split()[1]) for row in rows if row.startswith("VmHWM:"))
    return next(peaks, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) // 1024


def forget_peak() -> None:
    """Reset the peak on each GPU, so that earlier stages of a warm worker do not count."""
    cuda = _cuda()
    for device in range(cuda.device_count() if cuda else 0):
        cuda.reset_peak_memory_stats(device)


def most_taken() -> int:
    """Return the megabytes that tensors took at the highest peak of any GPU."""
    cuda = _cuda()
    devices = range(cuda.device_count() if cuda else 0)
    return max(map(cuda.max_memory_allocated, devices), default=0) // 2**20 if cuda else 0


def _cuda() -> Any:
    """Return torch.cuda if it has been used in this process."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and torch.cuda.is_initialized() else None


def process_age() -> float:
    """Return the seconds since this process was started, before any import."""
    start = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    return max(0.0, uptime - start / os.sysconf("SC_CLK_TCK"))
