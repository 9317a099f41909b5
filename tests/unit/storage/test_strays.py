"""Temporary files of writers that were killed."""

import os
import subprocess
import sys

import pytest

from fedstage.storage.files import save_text
from fedstage.storage.strays import is_stray, machine, remove_strays, temporary_name


@pytest.fixture
def dead():
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_only_those_of_ended_processes_of_this_machine_go(tmp_path, dead):
    stray = tmp_path / f".a.json.{machine()}.{dead}.tmp"
    others = [
        tmp_path / temporary_name("a.json"),  # of this process
        tmp_path / f".a.json.elsewhere.{dead}.tmp",
        tmp_path / f".a.json.{machine()}.1.tmp",
        tmp_path / f"a.json.{machine()}.{dead}.tmp",
        tmp_path / f".a.json.{machine()}.x.tmp",
        tmp_path / "a.json",
    ]
    for path in (stray, *others):
        path.touch()
    assert remove_strays(sorted(tmp_path.iterdir())) == [stray]
    assert sorted(tmp_path.iterdir()) == sorted(others)


def test_a_writer_removes_those_of_the_same_file(tmp_path, dead):
    stray, other = (tmp_path / f".{name}.{machine()}.{dead}.tmp" for name in ("a[1]", "a"))
    stray.touch()
    other.touch()
    save_text(tmp_path / "a[1]", "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == [other.name, "a[1]"]


def test_a_killed_writer_leaves_a_stray(tmp_path):
    code = (
        "import os, sys; from fedstage.storage.files import replacing\n"
        "with replacing(sys.argv[1]) as path:\n"
        "    path.touch(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a")], env=os.environ, check=False)
    (left,) = tmp_path.iterdir()
    assert is_stray(left)
