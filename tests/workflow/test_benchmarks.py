"""Each benchmark runs, at its smallest: what it measures is for those who call it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.workflow

ONE = ["--repeats", "1"]

SMALLEST = {
    "distillation": ["--steps=2", "--batch=4", "--public=8", "--members=1", *ONE],
    "graph": ["--jobs", "30"],
    "peak_memory": ["--batch=2", "--only=fp32"],
    "round_time": ["--participants", "4", "--rounds=1", "--methods", "fedavg"],
    "stage_overhead": ["2"],
    "starting": ["--turns=1", "--rounds=1", "--only", "plan", "short_run"],
    "training": ["--steps=1", "--model=logistic_regression", "--only=fp32", *ONE],
}


@pytest.mark.parametrize("name", SMALLEST)
def test_a_benchmark_measures_something(name):
    if name == "starting" and "FEDSTAGE_DATA" not in os.environ:
        pytest.skip("FEDSTAGE_DATA is not set")
    command = [sys.executable, "-m", f"tests.benchmarks.{name}", *SMALLEST[name]]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d\.\d", done.stdout)
