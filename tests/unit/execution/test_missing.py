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
LINES = [f"{name}\t-\trule\t-\t{how}\t{plan}" for name, how, plan in ROWS]
SUMMARY = "\n".join(["Building DAG of jobs...", HEAD, *LINES])


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
    command = "snakemake --cores all $(fedstage missing 'a table' --configfile my.yaml)"
    assert said.err == f"2 files are gone; to make them again: {command}\n"


def test_nothing_is_gone(answer, capsys):
    answer(0, f"{HEAD}\na.csv\t-\trule\t-\tok\tno update\n")
    assert main(["missing"]) == 0
    assert capsys.readouterr().err == "no file of a finished job is missing\n"


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
