"""Runs exported to TensorBoard and MLflow, read back by these programs themselves."""

import os

import pytest
from measured import described, runs_file, write_metrics

from fedstage.execution.cli import main
from fedstage.execution.export import files_of
from fedstage.execution.exported_runs import exported
from fedstage.experiments.found_runs import read_finished
from fedstage.storage.files import save_json

NAME = "fedavg/partition.alpha=0.1/seed_0"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder with three runs; the first has scores on validation samples too."""
    monkeypatch.chdir(tmp_path)
    runs = []
    for method, seed, accuracy in (("fedavg", 0, 60.0), ("fedavg", 1, 61.0), ("fedsdd", 0, 70.0)):
        stem = f"results/training/{method}{seed}"
        write_metrics(tmp_path / f"{stem}-test.parquet", [9.0, accuracy], auc=[None] * 2)
        settings = {"method": method, "partition.alpha": 0.1, "seed": seed}
        validation = [f"{stem}-validation.parquet"]
        runs.append(described(settings, f"{stem}-test.parquet", validation=validation))
    path = tmp_path / "results/training/fedavg0-validation.parquet"
    write_metrics(path, [9.0, 55.0], role=["validation"] * 2)
    path = tmp_path / "results/descriptions/tiny/mini.runs.json"
    path.parent.mkdir(parents=True)
    save_json(path, runs_file(runs, experiment="tiny", scale="mini"))
    return tmp_path


def add(folder, *places):
    for place in places:
        path = folder / "results" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("| a |\n|---|\n| 1 |\n")


def test_a_run_has_a_name_settings_and_scalars_of_both_roles(folder):
    first, second, _ = (exported(run, folder) for run in read_finished("tiny/mini", folder).runs)
    assert first.name == NAME
    assert first.settings["client.learning_rate"] == 0.05
    assert first.settings["rounds"] == 2
    assert (first.settings["method"], first.settings["partition.alpha"]) == ("fedavg", 0.1)
    assert first.scalars["test/top1_accuracy"] == [(1, 9.0), (2, 60.0)]
    assert first.scalars["validation/top1_accuracy"] == [(1, 9.0), (2, 55.0)]
    assert "test/auc" not in first.scalars  # null
    assert "validation/loss" not in second.scalars


def test_files_are_those_of_the_scale_only(folder):
    own = ["descriptions/tiny/mini.runs.json", "figures/tiny/mini_accuracy.png",
           "tables/tiny/mini.md"]  # fmt: skip
    others = ["tables/tiny/mini_long.md", "tables/other/mini.md"]
    add(folder, *own[1:], *others, "descriptions/tiny/mini_long.runs.json")
    found = [str(path.relative_to(folder / "results")) for path in files_of("tiny/mini", folder)]
    assert found == own


def test_a_second_export_is_refused_and_the_first_is_what_tensorboard_reads(folder, capsys):
    pytest.importorskip("tensorboard", reason="the extra `tensorboard` is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    add(folder, "tables/tiny/mini.md")
    assert main(["export", "tiny/mini", "--to", "tensorboard", "events"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("3 runs of tiny/mini are in events; to look at them: tensorboard ")
    events = EventAccumulator(str(folder / "events/tiny/mini" / NAME)).Reload()
    scores = [(one.step, one.value) for one in events.Scalars("test/top1_accuracy")]
    assert scores == [(1, 9.0), (2, 60.0)]
    assert len(list((folder / "events/tiny/mini").glob("*/*/seed_*"))) == 3
    assert main(["export", "tiny/mini", "--to", "tensorboard", "events"]) == 1
    assert capsys.readouterr().err == (
        "fedstage export: events/tiny/mini: is there already; delete it, or name another folder\n"
    )


def test_runs_artefacts_and_a_second_export_in_mlflow(folder, capsys, monkeypatch):
    pytest.importorskip("mlflow", reason="the extra `mlflow` is not installed")
    monkeypatch.delenv("MLFLOW_DISABLE_TELEMETRY", raising=False)
    add(folder, "tables/tiny/mini.md")
    assert main(["export", "tiny/mini", "--to", "mlflow", "runs"]) == 0
    assert capsys.readouterr().out.startswith("3 runs of tiny/mini are in runs; to look at them: ")
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{folder}/runs/mlflow.db")
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"
    experiment = client.get_experiment_by_name("tiny/mini")
    found = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    assert len(found) == 3 + 1
    run, parent = found[NAME], found["tiny/mini"].info.run_id
    assert run.data.params["client.learning_rate"] == "0.05"
    assert run.data.metrics["validation/top1_accuracy"] == 55.0
    history = client.get_metric_history(run.info.run_id, "test/top1_accuracy")
    assert [(one.step, one.value) for one in history] == [(1, 9.0), (2, 60.0)]
    assert run.info.status == "FINISHED"
    assert run.data.tags["mlflow.parentRunId"] == parent
    files = [file.path for file in client.list_artifacts(parent, "tables")]
    assert files == ["tables/mini.md"]
    assert main(["export", "tiny/mini", "--to", "mlflow", "runs"]) == 1
    assert capsys.readouterr().err == (
        "fedstage export: runs: has tiny/mini already; delete it, or name another folder\n"
    )
