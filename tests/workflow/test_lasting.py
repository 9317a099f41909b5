"""Scores that outlast the machine: files of scores."""

import csv
import os
import subprocess
import sys

import pytest
import yaml

from fedstage.results.tables.score_file import ORIGIN

pytestmark = pytest.mark.workflow

CLAIMS = [
    {
        "id": "above",
        "text": "FedSDD is more accurate than FedAvg.",
        "place": "nowhere",
        "experiment": "tiny",
        "greater": {"method": "fedsdd"},
        "than": {"method": "fedavg"},
    }
]
#: What is made of scores alone.
MADE = ("tables/tiny/*", "claims/tiny/*", "figures/tiny/default_accuracy.*")


def with_seeds(project, seeds):
    """Configure a project with these seeds, and a claim."""
    project.configure(methods=["fedavg", "fedsdd"], results=["table", "figures"])
    path = project.path / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config["experiments"]["tiny"]["grid"]["seed"] = seeds
    path.write_text(yaml.safe_dump(config | {"claims": CLAIMS}))
    return project


def aim_elsewhere(project):
    """Configure a project's targets to be another experiment."""
    path = project.path / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config["experiments"]["another"] = config["experiments"]["tiny"]
    path.write_text(yaml.safe_dump(config | {"targets": ["another"]}))
    return project


def fedstage(project, *arguments):
    """Call the command line as a user does; return what it prints."""
    workflow = os.path.join(os.path.dirname(project.command()[4]), "workflow")
    more = ["--workflow", workflow] if arguments[0] == "scores" else []
    command = [sys.executable, "-m", "fedstage.execution.cli", *map(str, arguments), *more]
    done = subprocess.run(command, cwd=project.path, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def made_of_scores(folder):
    """Return the bytes of files made of scores, and the scores without their origin."""
    results = folder / "results"
    paths = [path for pattern in MADE for path in results.glob(pattern)]
    return {
        path.relative_to(results).as_posix(): _scores(path) or path.read_bytes() for path in paths
    }


def _scores(path):
    if not path.name.endswith(".scores.csv"):
        return None
    with path.open(newline="") as file:
        return [{k: row[k] for k in row if k not in ORIGIN} for row in csv.DictReader(file)]


@pytest.fixture(scope="module")
def both(new_project):
    """A finished run of two seeds on one machine."""
    project = with_seeds(new_project(), [0, 1])
    project.make()
    return project


@pytest.fixture(scope="module")
def first(new_project):
    """A finished run of the first seed."""
    project = with_seeds(new_project(), [0])
    project.make()
    return project


def test_tables_curves_and_claims_are_made_of_scores_of_several_machines(
    both, first, new_project, tmp_path
):
    second = with_seeds(new_project(), [1])
    second.make()
    elsewhere = aim_elsewhere(with_seeds(new_project(), [0]))
    files = [one.path / "results/tables/tiny/default.scores.csv" for one in (second, first)]
    fedstage(first, "scores", "merge", *files, "-o", tmp_path / "both.csv")
    printed = fedstage(
        elsewhere,
        "scores",
        "present",
        tmp_path / "both.csv",
        "--target",
        "tiny",
        "-o",
        tmp_path / "out",
    )
    assert printed == f"4 runs are in {tmp_path / 'out'}\n"
    expected = made_of_scores(both.path)
    assert len(expected) == 6 + 4 + 4
    assert made_of_scores(tmp_path / "out") == expected
    with files[0].open(newline="") as file:
        row = next(csv.DictReader(file))
    assert "cores" in row["machine"]
    assert float(row["seconds"]) > 0
    assert row["source"]
