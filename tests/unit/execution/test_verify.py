"""`fedstage verify`, on summaries as snakemake prints them, and what killed processes leave."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fedstage.execution import missing, verify
from fedstage.execution.cli import main
from fedstage.execution.verify import sweep
from fedstage.storage.files import save_json
from fedstage.storage.raw_contents import raw_of_job
from fedstage.storage.strays import machine

HEAD = "output_file\tdate\trule\tlog-file(s)\tstatus\tplan"


@pytest.fixture(autouse=True)
def own_places(tmp_path, monkeypatch):
    """Leave the real sockets of this user alone."""
    for name in ("XDG_RUNTIME_DIR", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(verify, "_SHARED", str(tmp_path))


@pytest.fixture
def summary(tmp_path, monkeypatch):
    """Let snakemake know of three files, of which one is made anew and one is gone."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        save_json(f"results/{name}.json", {"x": 1})
    rows = [("a", "ok", "no update"), ("b", "ok", "update pending"), ("c", "missing", "no update")]
    recipes = [f"results/{name}.json\t-\trule\t-\t{how}\t{plan}" for name, how, plan in rows]
    commands = []

    def answer(command, **options):
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, "\n".join([HEAD, *recipes]), "")

    monkeypatch.setattr(missing.subprocess, "run", answer)
    return recipes


def test_what_is_wrong_is_printed_with_the_command_that_makes_it_again(summary, capsys):
    Path("results/a.json").write_text("{}")
    Path("results/b.json").write_text("{")
    assert main(["verify", "a table", "--configfile", "my.yaml"]) == 1
    said = capsys.readouterr()
    lines = [line.partition(" (")[0].partition(": ")[::2] for line in said.out.splitlines()]
    assert lines == [
        ("results/c.json", "is gone"),
        (
            "results/a.json",
            "has no SHA-256 under the key 'fedstage': altered, or an older version wrote it",
        ),
        ("results/b.json", "truncated or altered, not JSON"),
    ]
    assert said.err == (
        "fedstage verify: 3 wrong or gone, of 2 files there; to make them again: snakemake --cores "
        "all --configfile my.yaml --force results/c.json results/a.json "
        "results/b.json\n"
    )


def test_all_is_well(summary, capsys):
    summary.pop()
    assert main(["verify"]) == 0
    assert capsys.readouterr().out == (
        "1 file matches its record and inputs; 1 more is out of date and not compared: the next "
        "run makes it again\n"
    )


def test_nothing_is_said_of_files_out_of_date_where_there_are_none(summary, capsys):
    summary[1:] = [summary[0].replace("a.json", "b.json")]
    assert main(["verify"]) == 0
    assert capsys.readouterr().out == "2 files match their records and inputs\n"


@pytest.fixture
def data_set(summary, monkeypatch):
    """Let snakemake plan to read a data set of two raw files, of which one has changed, again."""
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    option = json.dumps({"name": "parquet", "folder": "mine"})
    for name in ("train", "test"):
        Path("data/mine").mkdir(parents=True, exist_ok=True)
        Path(f"data/mine/{name}.parquet").write_text(name)
    Path("config.yaml").write_text("data_folder: data\n")
    record = {
        "stage": "dataset", "made": "2026", "options": {"settings": option}, "inputs": {},
        "outputs": {}, "versions": {}, "compute_s": 1, "startup_s": 1, "peak_memory_mb": 1,
    }  # fmt: skip
    save_json("results/logs/dataset/mine-0.record.json", record | raw_of_job(option, Path("data")))
    save_json("results/data/mine-0/info.json", {"train": 1})
    summary[:] = [summary[0], "results/data/mine-0/info.json\t-\trule\t-\tok\tupdate pending"]
    Path("data/mine/train.parquet").write_text("TRAIN")
    return summary


def test_a_raw_file_that_has_changed_is_named(data_set, capsys):
    Path("data/mine/train-1.parquet").write_text("more")
    assert main(["verify", "mine", "--configfile", "my.yaml"]) == 1
    said = capsys.readouterr()
    names, reasons = zip(*(line.split(": ") for line in said.out.splitlines()), strict=True)
    assert names == ("data/mine/train-1.parquet", "data/mine/train.parquet")
    assert reasons[0].endswith(", added since results/data/mine-0 was made")
    assert re.fullmatch(r"\w{16}, was \w{16} when results/data/mine-0 was made", reasons[1])
    assert said.err == (
        "fedstage verify: 2 raw files differ from what results were made of; to update these: "
        "snakemake --cores all mine --configfile my.yaml\n"
    )


def test_wrong_files_and_raw_files_are_counted_apart(data_set, capsys):
    Path("results/a.json").write_text("{}")
    assert main(["verify"]) == 1
    assert re.search(r"verify: 1 wrong or gone, .*; 1 raw file differs", capsys.readouterr().err)


def test_raw_files_that_the_run_does_not_read_are_not_compared(data_set, capsys):
    data_set[1] = data_set[1].replace("update pending", "no update")
    assert main(["verify"]) == 0


def test_results_are_in_the_folder_of_the_option(summary, monkeypatch, capsys):
    summary.pop()
    folder = str(Path.cwd())
    monkeypatch.chdir("/")
    Path(folder, "results/a.json").write_text("{}")
    assert main(["verify", "--directory", folder]) == 1
    assert "results/a.json: has no SHA-256" in capsys.readouterr().out


def test_what_ended_processes_left_is_removed(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()

    place, host = tmp_path / f"fedstage-{os.getuid()}", socket.gethostname()
    place.mkdir()
    alive = [f"{host}-{os.getpid()}.sock", f"elsewhere-{process.pid}.sock", "other"]
    dead = [f"{host}-{process.pid}.sock{end}" for end in ("", ".lock", ".log")]
    dead.append(f"{host}-job7-{process.pid}.sock")
    for name in (*alive, *dead):
        (place / name).touch()
    stray = tmp_path / f"results/x/.a.{machine()}.{process.pid}.tmp"
    stray.parent.mkdir(parents=True)
    stray.touch()
    removed = sweep(tmp_path, {"XDG_RUNTIME_DIR": str(tmp_path)})
    assert set(removed) == {stray, *(place / name for name in dead)}
    assert sorted(path.name for path in place.iterdir()) == sorted(alive)
    assert not stray.exists()
