"""Runs of a target in TensorBoard and MLflow, read back by these programs."""

import json
import sys

import pytest
from measured import described, runs_file
from tests.unit.results.conftest import ACCURACIES, tidy_of

from fedstage.execution.cli import main
from fedstage.results.tidy import write_tidy

RUN = "fedavg/partition.alpha=0.1/seed_0"


@pytest.fixture
def exporting(tmp_path, monkeypatch):
    """A function that exports 18 runs to a program, and returns what it says."""
    monkeypatch.chdir(tmp_path)
    tidy = tidy_of(ACCURACIES)
    settings = tidy.frame[tidy.run].drop_duplicates().to_dict("records")
    path = tmp_path / "results/descriptions/tiny/mini.runs.json"
    path.parent.mkdir(parents=True)
    runs = runs_file(map(described, settings), experiment="tiny", scale="mini")
    path.write_text(json.dumps(runs))
    write_tidy(tmp_path / "results/tables/tiny/mini.scores.parquet", tidy)
    (tmp_path / "results/tables/tiny/mini.md").write_text("| a |\n|---|\n| 1 |\n")
    (tmp_path / "results/tables/tiny/mini_2.md").write_text("of another scale")
    return lambda to: main(["export", "tiny/mini", "--to", to, "into"])


def test_tensorboard_has_scores_over_rounds_and_tables(exporting, tmp_path, capsys):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    assert exporting("tensorboard") == 0
    said = capsys.readouterr().out
    assert said == "18 runs of tiny/mini are in into; to look at them: tensorboard --logdir into\n"
    made = tmp_path / "into/tiny/mini"
    found = events.EventAccumulator(str(made / RUN)).Reload()
    scores = [(one.step, one.value) for one in found.Scalars("test/top1_accuracy")]
    assert scores == [(1, 59.0), (2, 60.0)]
    assert len(list(made.glob("*/*/seed_*"))) == 18
    texts = events.EventAccumulator(str(made / "tables")).Reload().Tags()["tensors"]
    assert texts == ["tables/mini/text_summary"]
    assert exporting("tensorboard") == 1
    assert "into/tiny/mini: is there already; delete it" in capsys.readouterr().err


def test_mlflow_has_settings_scores_and_files(exporting, capsys):
    mlflow = pytest.importorskip("mlflow")
    assert exporting("mlflow") == 0
    assert "18 runs of tiny/mini are in into; to look at them: cd into && uvx mlflow@" in (
        capsys.readouterr().out
    )
    client = mlflow.MlflowClient(tracking_uri="sqlite:///into/mlflow.db")
    runs = client.search_runs([client.get_experiment_by_name("tiny/mini").experiment_id])
    by_name = {run.info.run_name: run for run in runs}
    assert len(runs) == 19
    assert by_name[RUN].data.metrics == {"test/top1_accuracy": 60.0}
    params = by_name[RUN].data.params
    assert params["partition.alpha"] == "0.1"
    assert params["rounds"] == "2"
    parent = by_name["tiny/mini"].info.run_id
    files = {one.path for one in client.list_artifacts(parent, "tables")}
    assert files == {"tables/mini.md", "tables/mini.scores.parquet"}
    assert exporting("mlflow") == 1
    assert "has tiny/mini already" in capsys.readouterr().err


def test_a_package_that_is_missing_is_named(exporting, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    assert exporting("mlflow") == 1
    assert "install the extra mlflow: uv sync --extra mlflow" in capsys.readouterr().err
