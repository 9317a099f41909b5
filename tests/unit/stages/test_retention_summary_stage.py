"""The stage `retention_summary` on measures written by hand, from a resolved experiment."""

import csv
import shutil
from itertools import count
from pathlib import Path

import pandas as pd
import pytest
import torch
from tests.shared.settings import config, experiment, federated
from tests.shared.stages import call

from fedstage.algorithm.measures.forgetting import RETENTION_SCHEMA
from fedstage.experiments.catalogue import load_catalogue
from fedstage.experiments.descriptions import describe_runs, files_of_rounds
from fedstage.plan.scores import retention
from fedstage.plan.training import global_model, participants_table
from fedstage.results.retention.table import RunRetention, mean_overlaps
from fedstage.settings.scores import RETAINED
from fedstage.storage.files import save_json
from fedstage.storage.tables import save_rows
from fedstage.storage.tensors import save_tensors

METHODS = Path(__file__).parents[3] / "workflow/methods.yaml"
EXPERIMENT = experiment(
    base=federated(
        data={"digits": {"held_out": 100}},
        clients=8,
        partition={"dirichlet": {"alpha": 1.0}},
        participants=4,
        rounds=3,
        server={"steps": 20, "batch_size": 16, "learning_rate": 0.01},
    ),
    methods={"fedavg": {"label": "Averaging"}},
    grid={"method": ["fedavg", "fedsdd"], "partition.alpha": [0.1, 1.0], "seed": [0, 1]},
    table={"columns": ["partition.alpha"]},
    results=["retention"],
)
OUTPUTS = ("csv", "parquet", "by_run", "overlap", "markdown", "html", "curves")


def load(folder, **changes):
    shutil.copy(METHODS, folder)
    raw = EXPERIMENT | changes
    return load_catalogue(config(e=raw), folder)


def write(path, shift, rounds=3):
    """Write measures whose forget scores are `shift` and shift + 1, and what was learnt."""
    first = dict.fromkeys(RETENTION_SCHEMA.names) | {
        "round": 1, "samples": 20, "current": 70.0, "distance": 0.5, "top1_accuracy": 10.0 + shift,
    }  # fmt: skip
    rows = [first]
    for round_ in range(2, rounds + 1):
        score = shift + round_ - 2
        previous = {"previous": 60.0, "current": 60.0 + score, "forget_score": score}
        counts = {"lost": 4, "gained": 2, "retained": 10}
        rows.append(first | {"round": round_, "samples": 20} | previous | counts)
    save_rows(path, rows, RETENTION_SCHEMA)
    end = torch.arange(10) < 5 + shift
    save_tensors(
        str(Path(path).with_suffix(".safetensors")),
        {"start": torch.zeros(10, dtype=torch.bool), "end": end},
    )


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    catalogue = load(tmp_path)
    numbers = count()
    for run in catalogue.runs["e", "default"]:
        write(retention(run.recipe, 3), float(next(numbers) % 2 + 2 * (run.recipe.seed)))
    return make(catalogue)


def make(catalogue):
    save_json(Path("runs.json"), describe_runs(catalogue, "e", "default"))
    outputs = {name: Path(f"out_{name}.png") for name in OUTPUTS}
    curves = {"curves": [outputs["curves"]]}
    call("retention_summary", {"runs": Path("runs.json")} | outputs | curves)
    return outputs


def test_a_row_a_cell_is_the_mean_over_seeds(made):
    rows = {
        (row["method"], row["partition.alpha"]): row for row in csv.DictReader(made["csv"].open())
    }
    assert len(rows) == 4
    # With seed 0 the scores are 0 and 1, with seed 1 they are 3 and 4.
    row = rows["fedavg", "0.1"]
    assert (float(row["forget_score"]), row["seeds"]) == (2.0, "2")
    assert float(row["forget_score_std"]) == pytest.approx(3 / 2**0.5)
    assert (float(row["lost"]), float(row["retained_std"])) == (4.0, 0.0)
    frame = pd.read_parquet(made["parquet"])
    assert frame["forget_score"].tolist() == [float(row["forget_score"]) for row in rows.values()]


def test_each_run_has_a_row_for_claims(made):
    frame = pd.read_parquet(made["by_run"])
    assert set(frame) == {"method", "partition.alpha", "seed"} | RETAINED
    assert frame.set_index(["method", "partition.alpha", "seed"]).index.is_unique
    assert len(frame) == 8


def test_a_run_has_its_mean_overlap_with_the_other_methods_of_its_seed_and_cell():
    learnt = {
        ("kd", 0): [1, 1, 0, 0], ("bkd", 0): [1, 0, 1, 0], ("ft_kd", 0): [1, 1, 1, 0],
        ("kd", 1): [0, 1, 0, 0], ("bkd", 1): [0, 0, 0, 1], ("alone", 2): [1, 0, 0, 0],
    }  # fmt: skip
    runs = [
        RunRetention({"method": method, "seed": seed}, [], torch.tensor(right, dtype=torch.bool))
        for (method, seed), right in learnt.items()
    ]
    third, two_thirds = 100 / 3, 200 / 3
    kd, bkd, ft_kd, *others = mean_overlaps(runs, ["method"])
    assert [kd, bkd] == pytest.approx([(third + two_thirds) / 2] * 2)
    assert ft_kd == pytest.approx(two_thirds)
    assert others == [0.0, 0.0, None]


# --- what is known before -------------------------------------------------------------------------


def test_measures_and_all_main_models_are_read(tmp_path):
    catalogue = load(tmp_path)
    runs = catalogue.runs["e", "default"]
    described = describe_runs(catalogue, "e", "default")["runs"]
    assert [run["retention"] for run in described] == [[retention(run.recipe, 3)] for run in runs]
    read = set(files_of_rounds(catalogue))
    for run in runs:
        for round_ in (0, 1, 2, 3):
            assert global_model(run.recipe, round_, 0) in read
        for round_ in (1, 2, 3):
            assert participants_table(run.recipe, round_, 0) in read
    assert not set(files_of_rounds(load(tmp_path, results=["table"])))


def test_of_a_choice_the_measures_of_all_candidates_are_read(tmp_path):
    tried = {"own": {"local": "fedavg", "choose": {"among": {"client.epochs": [1, 2]}}}}
    base = EXPERIMENT["base"] | {"validation": 0.1}
    grid = {"method": ["own"], "seed": [0]}
    catalogue = load(tmp_path, methods=tried, grid=grid, table={}, base=base)
    (run,) = describe_runs(catalogue, "e", "default")["runs"]
    assert len(run["retention"]) == 2
    assert run["chosen"]
