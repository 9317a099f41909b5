"""Seconds and bytes that a stage took: kept beside its log, never in an artefact."""

import os
import resource
import time
from pathlib import Path

from fedstage.execution import gpu_memory


def process_age() -> float:
    """Return the seconds since this process was started (Linux: /proc), before any import."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        uptime = float(Path("/proc/uptime").read_text().split()[0])
    except OSError:
        return 0.0
    start_field = 19  # field 22 of proc(5), counted behind the command name
    return max(0.0, uptime - int(fields[start_field]) / os.sysconf("SC_CLK_TCK"))


class Timings:
    """Stop-watch of one stage.

    Attributes
    ----------
    startup : float
        Seconds from the start of the process to the start of the stage function.
    compute : float
        Seconds inside the stage function, files included.
    """

    def __init__(self, startup: float) -> None:
        _reset_peak()
        gpu_memory.forget_peak()
        self.startup = startup
        self._begin = time.perf_counter()
        self.compute = 0.0

    def finish(self) -> str:
        """Stop the watch; return one line for the log."""
        self.compute = time.perf_counter() - self._begin
        taken = gpu_memory.most_taken()
        on_gpu = f", {taken.peak} MB on the GPU" if taken else ""
        seconds = f"{self.startup:.2f} s start-up, {self.compute:.2f} s compute"
        return f"{seconds}, {peak_mb()} MB{on_gpu}"

    def figures(self) -> dict[str, float]:
        """Return the figures for the job's record."""
        figures = {
            "startup_s": round(self.startup, 3),
            "compute_s": round(self.compute, 3),
            "peak_memory_mb": peak_mb(),
        }
        taken = gpu_memory.most_taken()
        return figures | ({"peak_gpu_memory_mb": taken.peak} if taken else {})


def _reset_peak() -> None:
    """Forget the memory that earlier stages of a warm worker needed."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return  # not Linux, or not allowed: the peak is then the process's


def peak_mb() -> int:
    """Return the peak of resident memory: VmHWM, which can be reset, or the process's maximum."""
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return kilobytes // 1024
    rows = (row.split() for row in status.splitlines() if row.startswith("VmHWM:"))
    return int(next(rows, ["", str(kilobytes)])[1]) // 1024
