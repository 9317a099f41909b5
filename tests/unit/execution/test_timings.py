import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedstage.execution.notes import Timings, process_age


def age_of_process_that_sleeps(seconds):
    """Return the age that a process measures, and the time that it took as seen from here."""
    code = (
        f"import time; time.sleep({seconds}); "
        "from fedstage.execution.notes import process_age; print(process_age())"
    )
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout), time.perf_counter() - start


def test_age_counts_from_the_start_of_the_process():
    age, elapsed = age_of_process_that_sleeps(0.5)
    assert 0.49 <= age <= elapsed + 0.05  # /proc counts in hundredths


def test_age_grows_with_time():
    before = process_age()
    time.sleep(0.2)
    assert 0.17 <= process_age() - before <= 5


def test_age_is_that_of_this_process_not_of_the_machine():
    assert 0 < age_of_process_that_sleeps(0)[0] < 30
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    assert process_age() < uptime


def test_compute_is_the_time_between_start_and_finish():
    timings = Timings(startup=1.25)
    time.sleep(0.1)
    figures = timings.finish()
    assert figures["startup_s"] == 1.25
    assert 0.1 <= figures["compute_s"] < 5


def test_figures_are_rounded_to_milliseconds():
    timings = Timings(startup=0.12345)
    figures = timings.finish()
    assert list(figures) == ["startup_s", "compute_s", "peak_memory_mb"]
    assert figures["startup_s"] == 0.123
    assert 0 <= figures["compute_s"] < 1


def test_memory_is_the_peak_of_the_process_in_megabytes(tmp_path):
    code = """
import sys, pathlib
from fedstage.execution.notes import Timings
timings = Timings(0.0)
if sys.argv[2] == "much":
    block = bytearray(200 * 2**20)
    del block
import json
pathlib.Path(sys.argv[1]).write_text(json.dumps(timings.finish()))
"""
    peaks = {}
    for name in ("little", "much"):
        path = tmp_path / name
        subprocess.run([sys.executable, "-c", code, str(path), name], check=True)
        peaks[name] = json.loads(path.read_text())["peak_memory_mb"]
    assert 5 < peaks["little"] < 150
    assert 190 < peaks["much"] - peaks["little"] < 250


def test_memory_of_an_earlier_stage_in_the_same_process_does_not_count(tmp_path):
    code = """
import sys, pathlib
from fedstage.execution.notes import Timings
block = bytearray(200 * 2**20)
del block
timings = Timings(0.0)
import json
pathlib.Path(sys.argv[1]).write_text(json.dumps(timings.finish()))
"""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError as error:
        pytest.skip(f"this system cannot reset the peak of a process: {error}")
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a")], check=True)
    assert json.loads((tmp_path / "a").read_text())["peak_memory_mb"] < 150
