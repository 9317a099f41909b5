"""Values that are chosen on validation samples: which jobs that takes, and what is passed on."""

import json
from typing import get_args

import pytest
import yaml

from fedstage.execution.cli import main
from fedstage.plan.stages import RESULTS
from fedstage.settings.experiments import Result
from fedstage.storage.tables import load_table

from .test_clean import shipped

pytestmark = pytest.mark.workflow

EPOCHS = {"client.epochs": [1, 2, 3]}


def one_round(**choose):
    return {"local": "fedavg", "rounds": 1, "choose": {"among": EPOCHS, **choose}}


@pytest.fixture
def configured(project):
    def configure(rows, results=("table",), **base):
        project.configure(**base)
        path = project.path / "config.yaml"
        config = yaml.safe_load(path.read_text())
        config["experiments"]["tiny"]["methods"] = rows
        config["experiments"]["tiny"]["grid"] = {"method": list(rows)}
        config["experiments"]["tiny"]["results"] = list(results)
        path.write_text(yaml.safe_dump(config))
        return project

    return configure


def test_every_candidate_trains_and_is_scored_on_both_sets(configured):
    plain = {"local": "fedavg", "rounds": 1, "client": {"epochs": 2}}
    run = configured({"fedavg_os": one_round(), "fedavg": plain}).plan()
    assert run.jobs["choice"] == 1
    assert run.jobs["local_training"] == 3 * 2  # candidates x participants; `fedavg` is one of them
    assert run.jobs["evaluation"] == 2 * 3


def test_what_is_passed_on_is_the_test_accuracy_of_the_best_on_validation(
    configured, monkeypatch, capsys
):
    project = configured({"fedavg_os": one_round()})
    project.make()
    (folder,) = project.files("results/choices/*")
    told = json.loads((project.path / folder / "chosen.json").read_text())
    scores = [one["validation_accuracy"] for one in told["candidates"]]
    best = told["candidates"][scores.index(max(scores))]
    assert told["chosen"] == best["values"]
    epochs = best["values"]["client.epochs"]
    (row,) = load_table(project.path / folder / "metrics.parquet").to_pylist()
    scored = {}
    for path in project.files("results/training/*/metrics/global_model-test/*.parquet"):
        settings = (project.path / path.parents[2] / "recipe.yaml").read_text()
        scored[settings.count(f"epochs: {epochs}\n")] = load_table(project.path / path).to_pylist()
    assert scored[1] == [row]
    assert "| FedAvg-OS " in (project.path / "results/tables/tiny/default.md").read_text()
    assert project.plan().jobs == {}
    shipped(project)
    monkeypatch.chdir(project.path)
    assert main(["clean"]) == 0
    assert capsys.readouterr().out.startswith("0 folders and files")


def test_all_that_presents_chosen_runs_may_read_every_file_that_it_reads(configured):
    private = {"privacy": {"example": {"clip": 1.0, "noise": 1.0, "delta": 1e-4}}}
    rows = {"mine": one_round(), "private": one_round() | private}
    run = configured(rows, get_args(Result)).make()
    assert {stage.name for stage in RESULTS} <= run.jobs.keys()
