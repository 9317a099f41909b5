"""Freed memory is kept during a job, and given back after it."""

import ctypes
import json
import subprocess
import sys

import pytest

needs_glibc = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "mallopt"), reason="needs glibc, the only one with mallopt"
)

#: As a training step does: some blocks of megabytes, written to and freed.
STEPS = """
import ctypes, json, resource, sys
from fedstage.training import freed_memory
if sys.argv[1] == "keep":
    freed_memory.keep_freed()
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
freed_memory.give_back()
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
