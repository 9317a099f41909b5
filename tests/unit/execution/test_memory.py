"""What a job took of a GPU is told."""

import json
import subprocess
import sys

import pytest
import torch

from fedstage.execution.notes import Timings, forget_peak, most_taken

# --- of a GPU -------------------------------------------------------------------------------------

GIGABYTE = 2**30


@pytest.fixture
def peaks(monkeypatch):
    """The peaks, in bytes, of two GPUs that are not there; used as a list."""
    peaks = [0, 0]
    for name, value in {
        "is_initialized": lambda: True,
        "device_count": lambda: len(peaks),
        "max_memory_allocated": peaks.__getitem__,
        "reset_peak_memory_stats": lambda device: peaks.__setitem__(device, 0),
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    return peaks


def test_the_gpu_where_most_was_taken_counts(peaks):
    peaks[:] = [GIGABYTE, 3 * GIGABYTE]
    assert most_taken() == 3 * 1024
    peaks[:] = [GIGABYTE, 0]
    assert most_taken() == 1024


def test_a_gpu_on_which_nothing_was_taken_was_not_used(peaks):
    assert most_taken() == 0


def test_peaks_are_forgotten(peaks):
    peaks[:] = [GIGABYTE, GIGABYTE]
    forget_peak()
    assert peaks == [0, 0]


def test_a_stage_has_the_peak_of_its_own_time(peaks):
    peaks[:] = [5 * GIGABYTE, 0]  # of an earlier stage
    timings = Timings(startup=0.0)
    peaks[1] = 2 * GIGABYTE
    assert timings.finish()["peak_gpu_memory_mb"] == 2048


def test_a_stage_on_the_cpu_has_no_figure_of_a_gpu(peaks):
    timings = Timings(startup=0.0)
    assert "peak_gpu_memory_mb" not in timings.finish()


def test_cuda_that_no_stage_has_used_is_not_asked(peaks, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    peaks[:] = [GIGABYTE, GIGABYTE]
    assert most_taken() == 0
    forget_peak()
    assert peaks == [GIGABYTE, GIGABYTE]


@pytest.mark.parametrize("before", ["", "import torch"])
def test_cuda_is_not_started_to_ask_it(before):
    code = f"""
{before}
import json, sys
from fedstage.execution.notes import forget_peak, most_taken
forget_peak()
torch = sys.modules.get("torch")
print(json.dumps([most_taken(), torch is not None and torch.cuda.is_initialized()]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [0, False]
