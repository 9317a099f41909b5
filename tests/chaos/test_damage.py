"""Damaged inputs of a finished run: see `damage.py` for the long run.

FEDSTAGE_DAMAGES is the number of damaged inputs, by default 60.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.workflow

COUNT = os.environ.get("FEDSTAGE_DAMAGES", "60")


def test_no_stage_accepts_damaged_inputs_with_another_output(finished_run):
    """In a process of its own, whose memory is bounded."""
    command = [sys.executable, "-m", "tests.chaos.damage", "--count", COUNT,
               "--folder", str(finished_run)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["inputs"] == int(COUNT)
    assert found["came"]["refused"] > found["came"].get("same", 0)
