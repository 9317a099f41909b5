"""The harness sees what must not be."""

import subprocess
import time

from .kills import differing
from .runs import MODES, Folder


def test_temporary_files_are_strays(tmp_path):
    folder = Folder(tmp_path, MODES[0])
    assert folder.strays() == []
    left = "results/a/.model.machine.12.tmp"
    (tmp_path / left).parent.mkdir(parents=True)
    (tmp_path / left).touch()
    assert folder.strays() == [left]


def test_a_process_that_stays_is_found_by_its_mark_and_ended(tmp_path):
    folder = Folder(tmp_path, MODES[0])
    process = subprocess.Popen(["sleep", "600"], env=folder.environment(), start_new_session=True)
    deadline = time.monotonic() + 60
    while folder.processes() != {process.pid: "sleep 600 "} and time.monotonic() < deadline:
        time.sleep(0.05)
    assert folder.end(0.1) == ["sleep 600 "]
    assert process.wait(60) == -9


def test_files_that_are_missing_new_or_other_differ():
    assert differing({"a": "1", "b": "2", "c": "3"}, {"a": "2", "c": "3", "d": "4"}) == [
        "a",
        "b",
        "d",
    ]
