"""Whose run works in a folder: notes beside logs, of processes that go on or were killed."""

import os
import subprocess
import sys

import pytest

from fedstage.execution.runs import explain_lock, note_run, noted, release
from fedstage.execution.snakemake_log import latest_log


@pytest.fixture
def log(tmp_path):
    """The log of a run of this process, with a later one of a call that was refused."""
    folder = tmp_path / ".snakemake/log"
    folder.mkdir(parents=True)
    (folder / "2026-11-22T2.snakemake.log").touch()
    path = folder / "2026-11-22T1.snakemake.log"
    path.touch()
    return path


def killed(log, *locks):
    """Note a process that is killed, which does not delete its note."""
    code = "import os, sys; from pathlib import Path; from fedstage.execution.runs import note_run"
    code += "; note_run(Path(sys.argv[1]), map(Path, sys.argv[2:]))"
    code += "; print(os.getpid(), flush=True); os.kill(os.getpid(), 9)"
    done = subprocess.run([sys.executable, "-c", code, log, *locks], capture_output=True, text=True)
    assert done.returncode == -9
    return int(done.stdout)


def test_a_run_that_works_is_named_and_followed(log, tmp_path):
    note = note_run(log)
    assert explain_lock(tmp_path) == f"another run (process {os.getpid()}) works in this folder"
    assert latest_log(tmp_path) == log
    note.unlink()
    assert noted(tmp_path) == {}
    assert latest_log(tmp_path) != log


def test_a_run_that_was_killed_is_named_until_the_next(log, tmp_path):
    number = killed(log)
    assert explain_lock(tmp_path) == (
        f"this folder is locked by a run that was killed (process {number}); unlock it: "
        "snakemake --unlock"
    )
    assert latest_log(tmp_path) == log
    later = log.with_name("2026-11-22T3.snakemake.log")
    note_run(later)
    assert list(noted(tmp_path)) == [later]


@pytest.fixture
def locks(tmp_path):
    """The locks that a run takes before it notes its process."""
    folder = tmp_path / ".snakemake/locks"
    folder.mkdir(parents=True)
    paths = [folder / f"0.{kind}.lock" for kind in ("input", "output")]
    for path in paths:
        path.touch()
    return paths


def test_the_lock_of_a_run_that_was_killed_is_removed(log, tmp_path, locks):
    other = tmp_path / ".snakemake/locks/1.input.lock"
    other.touch()
    number = killed(log, *locks)
    assert release(tmp_path) == (
        f"a run that was killed had locked this folder (process {number}); its lock is removed"
    )
    assert list(other.parent.iterdir()) == [other]
    assert release(tmp_path) is None


def test_the_lock_of_a_run_that_may_work_stays(log, tmp_path, locks):
    note = note_run(log, locks)
    mine = note.read_text()
    assert release(tmp_path) is None
    machine, number, _, *rest = mine.split()
    for text in (
        f"elsewhere 1 1 {' '.join(rest)}",  # another machine
        f"{machine} {number} 1 pid:[1] {' '.join(rest[1:])}",  # another container of this one
        f"{machine} {number} 1",  # of an earlier version, or of jobs on a cluster, which go on
        f"{machine} {number} 1 {rest[0]}",
    ):
        note.write_text(text)
        assert release(tmp_path) is None
    note.write_text(f"{machine} {number} 1 {' '.join(rest)}")
    for path in locks:  # taken by another run, after the folder was unlocked
        os.utime(path, ns=(note.stat().st_mtime_ns + 1,) * 2)
    assert release(tmp_path) is None
    assert all(path.exists() for path in locks)


def test_a_later_process_of_the_same_number_is_another(log, tmp_path):
    note = note_run(log)
    machine, number, start, *rest = note.read_text().split()
    note.write_text(f"{machine} {number} {int(start) - 1} {' '.join(rest)}")
    assert noted(tmp_path)[log].has_ended()


def test_a_process_of_another_machine_may_go_on(log, tmp_path):
    note = note_run(log)
    note.write_text("elsewhere 1 1")
    assert explain_lock(tmp_path) == (
        "another run (process 1 of elsewhere) works in this folder; if it was killed, unlock it: "
        "snakemake --unlock"
    )


@pytest.mark.parametrize("note", ["", "one two"])
def test_without_notes_both_are_possible(log, tmp_path, note):
    log.with_name(f"{log.name}.process").write_text(note)
    assert explain_lock(tmp_path) == (
        "another run works in this folder, or was killed; if it was, unlock it: snakemake --unlock"
    )
