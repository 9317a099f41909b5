"""Results at hand after a real run: in Python, as links, on the terminal; and the page about it."""

import contextlib
import io
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
import yaml

from fedstage import results
from fedstage.data.samples import read_info, read_labelled
from fedstage.training.images import normalise

pytestmark = pytest.mark.workflow

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "workflow/docs/reading_results.md"
ROUNDS = {"federated": {"rounds": 3, "batch_size": 8, "learning_rate": 0.1}}
MLP = {"aggregator": {"mlp": {"hidden": 5}}, "aggregator_training": ROUNDS}
ONE_SHOT = {"training": "one_shot", "rounds": 1, "local_fraction": None}
#: Methods of the tiny experiment's own, beside those of the library and of the others.
OWN = {
    "aggregated": ONE_SHOT | MLP,
    "student": ONE_SHOT | {"aggregator": "weighted", "distillation": "l1", "server": {"steps": 5}},
    "client_1": {"training": "alone", "rounds": 1, "evaluate_client": 1},
    "in_8_bits": {"training": "alone", "rounds": 1, "quantisation": "int8"},
}
if find_spec("torchao") is None:
    del OWN["in_8_bits"]
METHODS = ["fedavg", "feddf", "fedsdd", "local_only", "ensemble_of_clients", *OWN]
#: Those whose score is of one model.
SINGLE = ["fedavg", "feddf", "fedsdd", "student", "client_1"]


@pytest.fixture(scope="module")
def made(new_project):
    """A finished run of an experiment with the name and the methods that the page is about."""
    project = new_project().configure(methods=METHODS)
    config = yaml.safe_load((project.path / "config.yaml").read_text())
    experiment = config["experiments"].pop("tiny")
    experiment["grid"]["seed"] = [20, 1]
    experiment["methods"] |= OWN
    experiment["base"]["aggregator_fraction"] = 0.2
    del experiment["base"]["seed"]
    config |= {"targets": ["quickstart"], "experiments": {"quickstart": experiment}}
    (project.path / "config.yaml").write_text(yaml.safe_dump(config))
    project.make("--config", "keep=all")
    return project


def score(frame, method, measure="top1_accuracy"):
    """Return a measure of the last round of seed 1 on test samples."""
    query = "method == @method and measure == @measure and seed == 1 and role == 'test'"
    return frame.query(query).sort_values("round")["value"].iloc[-1]


def test_the_code_of_the_page_runs_as_it_stands(made, monkeypatch):
    monkeypatch.chdir(made.path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 4
    space, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), space)
    assert "FedAvg" in printed.getvalue()  # of the differences


@pytest.mark.parametrize("method", SINGLE)
def test_the_model_at_hand_is_the_one_in_the_table(made, method):
    model = results.model("quickstart", method, 1, folder=made.path)
    (test,) = made.path.glob("results/data/*/test.safetensors")
    images, labels = read_labelled(test, None, torch.device("cpu"))
    inputs = normalise(images, read_info(test.with_name("info.json")))
    with torch.no_grad():
        right = (model(inputs).argmax(1) == labels).double().mean()
    assert not model.training
    assert 100 * float(right) == pytest.approx(
        score(results.scores("quickstart", made.path), method), abs=1e-9
    )


def fedstage(made, *arguments):
    """Return what a command prints in the working folder."""
    command = [sys.executable, "-m", "fedstage.execution.cli", *arguments]
    done = subprocess.run(command, cwd=made.path, check=True, capture_output=True, text=True)
    return done.stdout


def test_runs_are_listed_with_what_has_been_made_of_them(made):
    listed = fedstage(made, "list", "runs", "--workflow", str(REPOSITORY / "workflow"))
    rows = {tuple(line.split()[:2]): line.split()[2:] for line in listed.splitlines()}
    assert len(rows) == 1 + 2 * len(METHODS)
    accuracy = f"{score(results.scores('quickstart', made.path), 'fedavg'):.2f}"
    assert rows["fedavg", "1"][:2] == ["2/2", accuracy]
    assert (made.path / rows["fedavg", "1"][2] / "recipe.yaml").is_file()


def test_links_lead_to_the_runs_and_are_right_after_another_run(made):
    folder = made.path / "results/by_method/quickstart/default"
    links = {path.relative_to(folder).as_posix() for path in folder.glob("*/seed_*")}
    assert links == {f"{method}/seed_{seed}" for method in METHODS for seed in (20, 1)}
    metrics = next((folder / "fedsdd/seed_1").glob("metrics/*/*.parquet"))
    assert "evaluation" in fedstage(made, "why", str(metrics.relative_to(made.path)))
    stale = folder / "fedprox"
    stale.mkdir()
    (stale / "seed_20").symlink_to("../fedavg/seed_20")
    before = (folder / "fedsdd/seed_1").readlink()
    (made.path / "results/tables/quickstart/default.csv").unlink()
    made.make()
    assert not stale.exists()
    assert (folder / "fedsdd/seed_1").readlink() == before
