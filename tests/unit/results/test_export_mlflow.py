"""A database of MLflow, read back by MLflow itself."""

import os

import pytest

from fedstage.execution.cli import main

pytest.importorskip("mlflow", reason="the extra `mlflow` is not installed")


@pytest.fixture
def client(folder, monkeypatch, capsys):
    """A client of what was exported."""
    monkeypatch.chdir(folder)
    monkeypatch.delenv("MLFLOW_DISABLE_TELEMETRY", raising=False)
    (folder / "results/tables/tiny").mkdir(parents=True)
    (folder / "results/tables/tiny/mini.md").write_text("a table")
    assert main(["export", "tiny/mini", "--to", "mlflow", "runs"]) == 0
    assert capsys.readouterr().out.startswith("18 runs of tiny/mini are in runs; to look at them: ")
    from mlflow.tracking import MlflowClient

    return MlflowClient(tracking_uri=f"sqlite:///{folder}/runs/mlflow.db")


def test_runs_artefacts_and_a_second_export(client, capsys):
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"
    experiment = client.get_experiment_by_name("tiny/mini")
    found = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    assert len(found) == 18 + 1

    run = found["fedavg/partition.alpha=0.1/seed_0"]
    assert run.data.params["client.learning_rate"] == "0.05"
    assert run.data.metrics["validation/top1_accuracy"] == 55.0
    history = client.get_metric_history(run.info.run_id, "test/top1_accuracy")
    assert [(one.step, one.value) for one in history] == [(1, 9.0), (2, 60.0)]
    assert run.info.status == "FINISHED"

    parent = found["tiny/mini"].info.run_id
    assert run.data.tags["mlflow.parentRunId"] == parent
    files = [file.path for file in client.list_artifacts(parent, "tables")]
    assert files == ["tables/mini.md"]

    assert main(["export", "tiny/mini", "--to", "mlflow", "runs"]) == 1
    assert capsys.readouterr().err == (
        "fedstage export: runs: has tiny/mini already; delete it, or name another folder\n"
    )
