import csv
import shutil
from pathlib import Path

import pytest
from tests.shared.records import write_record
from tests.shared.settings import config, experiment, federated

from fedstage.experiments.catalogue import load_catalogue
from fedstage.experiments.descriptions import describe_runs
from fedstage.plan.jobs import jobs_of
from fedstage.stages.round_times import round_times
from fedstage.storage.files import save_json

METHODS = Path(__file__).parents[3] / "workflow/methods.yaml"
SECONDS = {"local_training": 2.0, "aggregation": 0.25, "logits": 0.5, "distillation": 200.0}


def write_records(run, slower):
    """Records of a run; trainings of round t take t - 1 seconds longer than those of round 1."""
    for job in jobs_of(run.recipe, run.length.rounds):
        more = job.round - 1 + slower if job.stage == "local_training" else 0.0
        write_record(Path(), job.stage, [job.file], SECONDS[job.stage] + more)


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    raw = experiment(
        base=federated(
            data={"digits": {"held_out": 100}},
            clients=8,
            rounds=3,
            server={"steps": 20, "batch_size": 16, "learning_rate": 0.01},
            numerics={"device": "cpu"},
        ),
        grid={"method": ["fedavg", "fedsdd"], "participants": [4, 8], "seed": [0, 1]},
        table={"columns": ["participants"]},
    )
    shutil.copy(METHODS, tmp_path)
    catalogue = load_catalogue(config(e=raw), tmp_path)
    for run in catalogue.runs["e", "default"]:
        write_records(run, slower=10.0 * run.recipe.seed)
    path = tmp_path / "runs.json"
    save_json(path, describe_runs(catalogue, "e", "default"))
    return path


def make(runs):
    paths = [runs.with_name(f"t.{suffix}") for suffix in ("md", "csv", "parquet")]
    named = dict(zip(("markdown", "csv", "parquet"), paths, strict=True))
    round_times(runs=runs, **named, by_run=runs.with_name("t.runs.parquet"))
    return paths


def test_medians_and_quartiles_are_over_rounds_and_seeds(runs):
    _, path, _ = make(runs)
    rows = {(row["method"], row["participants"]): row for row in csv.DictReader(path.open())}
    assert len(rows) == 4
    row = rows["fedsdd", "8"]
    # Trainings take 2, 3, 4 seconds with seed 0, and 12, 13, 14 with seed 1.
    assert [float(row[f"participant_s{end}"]) for end in ("", "_q1", "_q3")] == [8.0, 3.0, 13.0]
    assert float(row["training_s"]) == 8 * 8.0
    assert float(row["aggregation_s"]) == 4 * 0.25
    assert float(row["logits_s"]) == 4 * 0.5
    assert float(row["distillation_s"]) == 200.0
    assert float(row["added_s"]) == 202.0
    assert float(row["round_s"]) == 64 + 1 + 202
    assert (row["measured_rounds"], row["seeds"]) == ("6", "2")
    assert row["machine"] == "P, 4 cores, cpu"
    assert rows["fedavg", "4"]["added_s"] == ""
    assert float(rows["fedavg", "4"]["round_s"]) == 4 * 8.0 + 0.25
