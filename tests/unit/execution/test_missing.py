"""Missing files, from summaries as snakemake prints them."""

import subprocess

import pytest

from fedstage.execution import missing as module
from fedstage.execution.cli import main

HEAD = "output_file\tdate\trule\tlog-file(s)\tstatus\tplan"
ROWS = [
    ("a.csv", "ok", "no update"),
    ("b.csv", "missing", "no update"),
    ("c.csv", "missing", "update pending"),
    ("d.csv", "removed temp file", "no update"),
    ('e"x.csv', "missing", "no update"),
]
RECIPES = [f"{name}\t-\trule\t-\t{how}\t{plan}" for name, how, plan in ROWS]
SUMMARY = "\n".join(["Building DAG of jobs...", HEAD, *RECIPES])


@pytest.fixture
def answer(monkeypatch):
    """Let snakemake answer with a code and a text; return the commands that were called."""
    commands = []

    def set_answer(code, text):
        def run(command, **options):
            commands.append(command)
            return subprocess.CompletedProcess(command, code, text, "")

        monkeypatch.setattr(module.subprocess, "run", run)
        return commands

    return set_answer


def test_what_is_gone_is_listed(answer, capsys):
    commands = answer(0, SUMMARY)
    assert main(["missing", "a table", "--configfile", "my.yaml"]) == 0
    assert commands[0][-5:] == ["--dry-run", "--summary", "a table", "--configfile", "my.yaml"]
    said = capsys.readouterr()
    assert said.out.split() == ["b.csv", 'e"x.csv']
    command = "fedstage missing 'a table' --configfile my.yaml"
    command += " | xargs -r -d '\\n' snakemake --cores all"
    assert said.err == f"2 files are gone; to make them again: {command}\n"


@pytest.fixture
def described(tmp_path, monkeypatch):
    """Leave results of two experiments, one at two scales, in a working folder."""
    monkeypatch.chdir(tmp_path)
    for target in ("other/mini", "quickstart/default", "quickstart/large"):
        path = tmp_path / f"results/descriptions/{target}.runs.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "results/descriptions/other/mini.claims.json").touch()
    return ["other/mini", "quickstart/default", "quickstart/large"]


def test_without_targets_all_experiments_that_have_results_count(answer, described, capsys):
    commands = answer(0, SUMMARY)
    assert main(["missing", "--configfile", "my.yaml"]) == 0
    assert [command[5:] for command in commands] == [["all", *described, "--configfile", "my.yaml"]]
    assert capsys.readouterr().out.split() == ["b.csv", 'e"x.csv']


@pytest.mark.parametrize("last", ["fedstage: no such experiment\n\n", "  no such experiment\n"])
def test_an_experiment_that_there_is_not_any_more_is_left_out(monkeypatch, described, capsys, last):
    def run(command, **options):
        if "other/mini" in command:
            return subprocess.CompletedProcess(command, 1, "", f"Building\n{last}")
        return subprocess.CompletedProcess(command, 0, SUMMARY, "")

    monkeypatch.setattr(module.subprocess, "run", run)
    assert main(["missing"]) == 0
    printed = capsys.readouterr()
    assert printed.out.split() == ["b.csv", 'e"x.csv']
    told = "other/mini: cannot be planned, its files are left out: no such experiment\n2 files"
    assert printed.err.startswith(told)


def test_the_experiments_that_cannot_be_planned_are_found_by_halves(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    for number in range(16):
        path = tmp_path / f"results/descriptions/e/{number:02d}.runs.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    calls = []

    def run(command, **options):
        calls.append(command)
        return subprocess.CompletedProcess(command, int("e/06" in command), SUMMARY, "")

    monkeypatch.setattr(module.subprocess, "run", run)
    assert main(["missing"]) == 0
    assert "e/06: cannot be planned" in capsys.readouterr().err
    assert len(calls) == 2 + 2 * 4  # all together, the configured, and two halves four times


def test_nothing_is_gone(answer, capsys):
    answer(0, f"{HEAD}\na.csv\t-\trule\t-\tok\tno update\n")
    assert main(["missing"]) == 0
    said = capsys.readouterr()
    assert said.out == ""  # no line, which xargs would take for the name of a file
    assert said.err == "no file of a finished job is missing\n"


@pytest.mark.parametrize("files", [["a b.csv", 'e"x.csv'], []])
def test_the_command_that_makes_files_again_names_them_or_makes_nothing(
    answer, capsys, tmp_path, files
):
    rows = [f"{name}\t-\trule\t-\tmissing\tno update" for name in files]
    answer(0, "\n".join([HEAD, *rows]))
    main(["missing"])
    (tmp_path / "snakemake").write_text('#!/bin/sh\nprintf "%s\\n" "$@" > made\n')
    (tmp_path / "snakemake").chmod(0o755)
    command = "PATH=.:$PATH " + module.describe(["any"], []).partition(" | ")[2]
    with subprocess.Popen(command, shell=True, cwd=tmp_path, stdin=subprocess.PIPE) as xargs:
        xargs.communicate(capsys.readouterr().out.encode())
    made = tmp_path / "made"
    assert made.exists() == bool(files)
    assert not files or made.read_text().splitlines() == ["--cores", "all", *files]


def test_a_single_file(answer, capsys):
    answer(0, f"{HEAD}\na.csv\t-\trule\t-\tmissing\tno update\n")
    assert main(["missing"]) == 0
    assert capsys.readouterr().err.startswith("1 file is gone;")


def test_what_cannot_be_planned_is_shown(answer, capsys):
    answer(1, "WorkflowError:\n  nope/x: no such experiment and scale\n")
    assert main(["missing", "nope"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert "  nope/x: no such experiment and scale" in lines
    assert lines[-1] == "fedstage missing: snakemake cannot plan the targets, see above"
