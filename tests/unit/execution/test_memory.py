"""Freed memory is kept during a job, and given back after it; what a job took of a GPU is told."""

import ctypes
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from fedstage.execution import memory, pool
from fedstage.execution.memory import Taken, forget_peak, most_taken
from fedstage.execution.timings import Timings

# --- of the machine -------------------------------------------------------------------------------

needs_glibc = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "mallopt"), reason="needs glibc, the only one with mallopt"
)

#: As a training step does: some blocks of megabytes, written to and freed.
STEPS = """
import ctypes, json, resource, sys
from fedstage.execution import memory
if sys.argv[1] == "keep":
    memory.keep_freed()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]

def step():
    blocks = [libc.malloc(16 * 1024**2) for _ in range(6)]
    for block in blocks:
        ctypes.memset(block, 1, 16 * 1024**2)
    for block in blocks:
        libc.free(block)

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 1024**2

step(), step()
before = faults()
for _ in range(5):
    step()
told = {"faults": faults() - before, "kept": resident()}
memory.give_back()
print(json.dumps(told | {"left": resident()}))
"""


def told(how):
    done = subprocess.run([sys.executable, "-c", STEPS, how], capture_output=True, check=True)
    return json.loads(done.stdout)


@needs_glibc
def test_memory_that_a_step_has_freed_serves_the_next():
    kept, usual = told("keep"), told("usual")
    assert kept["faults"] < 100
    assert usual["faults"] > 10 * kept["faults"]


@needs_glibc
def test_a_job_ends_without_what_its_steps_have_freed():
    kept = told("keep")
    assert kept["kept"] - kept["left"] > 90


@needs_glibc
def test_the_pool_keeps_memory_for_its_workers(monkeypatch):
    kept = []
    monkeypatch.setattr(memory, "keep_freed", lambda: kept.append(True))
    pool.as_a_worker()
    assert kept == [True]


# --- of a GPU -------------------------------------------------------------------------------------

GIGABYTE = 2**30


@pytest.fixture
def peaks(monkeypatch):
    """The peaks, in bytes, of two GPUs that are not there; used as a list."""
    peaks = [0, 0]
    sizes = [8 * GIGABYTE, 16 * GIGABYTE]
    for name, value in {
        "is_initialized": lambda: True,
        "device_count": lambda: len(peaks),
        "max_memory_allocated": peaks.__getitem__,
        "reset_peak_memory_stats": lambda device: peaks.__setitem__(device, 0),
        "get_device_properties": lambda device: SimpleNamespace(total_memory=sizes[device]),
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    return peaks


def test_the_gpu_where_most_was_taken_counts(peaks):
    peaks[:] = [GIGABYTE, 3 * GIGABYTE]
    assert most_taken() == Taken(3 * 1024, 16 * 1024)
    peaks[:] = [GIGABYTE, 0]
    assert most_taken() == Taken(1024, 8 * 1024)


def test_a_gpu_on_which_nothing_was_taken_was_not_used(peaks):
    assert most_taken() is None


def test_peaks_are_forgotten(peaks):
    peaks[:] = [GIGABYTE, GIGABYTE]
    forget_peak()
    assert peaks == [0, 0]


def test_a_stage_has_the_peak_of_its_own_time_in_log_and_record(peaks):
    peaks[:] = [5 * GIGABYTE, 0]  # of an earlier stage
    timings = Timings(startup=0.0)
    peaks[1] = 2 * GIGABYTE
    assert timings.finish().endswith(" MB, 2048 MB on the GPU")
    assert timings.figures()["peak_gpu_memory_mb"] == 2048


def test_a_stage_on_the_cpu_has_no_figure_of_a_gpu(peaks):
    timings = Timings(startup=0.0)
    assert "GPU" not in timings.finish()
    assert "peak_gpu_memory_mb" not in timings.figures()


def test_cuda_that_no_stage_has_used_is_not_asked(peaks, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    peaks[:] = [GIGABYTE, GIGABYTE]
    assert most_taken() is None
    forget_peak()
    assert peaks == [GIGABYTE, GIGABYTE]


@pytest.mark.parametrize("before", ["", "import torch"])
def test_cuda_is_not_started_to_ask_it(before):
    code = f"""
{before}
import json, sys
from fedstage.execution.memory import forget_peak, most_taken
forget_peak()
torch = sys.modules.get("torch")
print(json.dumps([most_taken(), torch is not None and torch.cuda.is_initialized()]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [None, False]
