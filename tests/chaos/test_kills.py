"""Kills at seeded moments, and runs that go on to the same bytes: see `kills.py` for the long run.

FEDSTAGE_KILLS is the number of kills in each mode, by default a few in one.
"""

import os
import tempfile
from pathlib import Path

import pytest

from .kills import campaign, undisturbed
from .runs import MODES

pytestmark = pytest.mark.workflow

KILLS = int(os.environ.get("FEDSTAGE_KILLS", "0"))
SEED = 20  # begins with a SIGKILL of all of a run, and goes on with workers amid their writing


@pytest.mark.parametrize("mode", MODES if KILLS else MODES[:1], ids=str)
def test_killed_runs_go_on_to_the_same_bytes(mode):
    with tempfile.TemporaryDirectory() as name:
        tally = campaign(mode, KILLS or 2, SEED, Path(name), undisturbed(Path(name)))
    print(tally)
    assert tally.faults == []
    assert tally.kills.total() >= (KILLS or 2)
