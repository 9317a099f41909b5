import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fedstage.errors import FedstageError
from fedstage.storage.files import (
    load_json,
    machine,
    read_bytes,
    replacing,
    save_json,
    save_text,
)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_replacing_puts_what_was_written_under_the_real_name(tmp_path):
    path = tmp_path / "a" / "b" / "file.txt"
    with replacing(path) as temporary:
        assert temporary.parent == path.parent
        assert temporary.name.startswith(".")
        temporary.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert names(path.parent) == ["file.txt"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_failing_writer_leaves_the_old_file_as_it_was(tmp_path, error):
    def fail():
        with replacing(tmp_path / "file.txt") as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert names(tmp_path) == []
    (tmp_path / "file.txt").write_text("old")
    with pytest.raises(error):
        fail()
    assert (tmp_path / "file.txt").read_text() == "old"
    assert names(tmp_path) == ["file.txt"]


@pytest.fixture
def calls(monkeypatch):
    """What is synced and renamed, in order, by names; what is synced is read at that time."""
    made, fsync, replace = [], os.fsync, os.replace

    def synced(file):
        path = Path(os.readlink(f"/proc/self/fd/{file}"))
        made.append(("sync", path.name if path.is_dir() else path.read_text()))
        fsync(file)

    def replaced(source, target):
        made.append(("replace", Path(target).name))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    return made


def test_what_a_run_reports_is_on_the_disk_before_it_has_its_name(tmp_path, calls):
    for path in (
        "results/tables/paper/mini.csv",
        "results/claims/paper/mini.csv",
        "results/choices/paper/metrics.parquet",
        "results/training/recipe/metrics/model-test/rounds_0001.parquet",
        "results/aggregators/recipe/recipe.yaml",
    ):
        calls.clear()
        with replacing(tmp_path / path) as temporary:
            temporary.write_text("whole")
        *folders, name = Path(path).parts
        in_folders = [("sync", folder) for folder in reversed(folders)]
        assert calls == [("sync", "whole"), ("replace", name), *in_folders]


def test_what_can_be_made_again_is_not_waited_for(tmp_path, calls):
    for path in (
        "results/training/recipe/round_0001/group_0/model.safetensors",
        "results/data/digits/train.safetensors",
        "results/logs/tables/paper/mini.json",
        "results/logs/evaluation/recipe/metrics/test.json",
        "tables/mini.csv",
    ):
        with replacing(tmp_path / path) as temporary:
            temporary.write_text("whole")
    assert [kind for kind, _ in calls] == ["replace"] * 5


def test_a_disk_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    def broken(file):
        raise OSError(errno.EIO, "Input/output error")

    path = tmp_path / "results/tables/mini.csv"
    save_text(path, "old")
    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(FedstageError, match=r"mini.csv: cannot be written: Input/output error"):
        save_text(path, "new")
    assert path.read_text() == "old"
    assert names(path.parent) == ["mini.csv"]


def test_json_round_trip_keeps_the_order_of_keys(tmp_path):
    content = {"b": 1, "a": [0.1, None, "ä"], "c": {"z": True, "y": False}}
    save_json(tmp_path / "new" / "a.json", content)
    read = load_json(tmp_path / "new" / "a.json")
    assert read == content
    assert list(read) == ["b", "a", "c"]
    assert (tmp_path / "new" / "a.json").read_text().endswith("}\n")


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        (b"", "not JSON"),
        (b'{"a": 1', "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[1, 2]", "must be a JSON object"),
        (b"null", "must be a JSON object"),
    ],
    ids=["empty", "truncated", "bytes", "list", "null"],
)
def test_json_that_is_no_object_is_refused_by_name(tmp_path, damaged, reason):
    path = tmp_path / "a.json"
    path.write_bytes(damaged)
    with pytest.raises(FedstageError, match=reason) as caught:
        load_json(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path):
    for path, reason in [(tmp_path / "none", "No such file"), (tmp_path, "Is a directory")]:
        for read in (read_bytes, load_json):
            with pytest.raises(FedstageError, match=reason) as caught:
                read(path)
            assert str(caught.value).startswith(f"{path}: ")


def test_only_the_standard_library_is_needed():
    code = (
        "import sys, fedstage.storage.files; "
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "fedstage" in loaded
    assert not {"numpy", "torch", "pyarrow", "pydantic", "yaml"} & loaded


def test_a_writer_removes_what_killed_writers_of_this_machine_left_of_the_same_file(tmp_path):
    code = (
        "import os, sys; from fedstage.storage.files import replacing\n"
        "with replacing(sys.argv[1]) as path:\n"
        "    path.touch(); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a[1]")], check=False)
    assert done.returncode == -signal.SIGKILL
    (stray,) = tmp_path.iterdir()
    assert stray.name != "a[1]"
    dead = stray.name.split(".")[-2]
    others = [
        f".a.{machine()}.{dead}.tmp",  # of another file
        f".a[1].elsewhere.{dead}.tmp",
        f".a[1].{machine()}.{os.getppid()}.tmp",
        f".a[1].{machine()}.x.tmp",
    ]
    for name in others:
        (tmp_path / name).touch()
    save_text(tmp_path / "a[1]", "text")
    assert names(tmp_path) == sorted([*others, "a[1]"])
