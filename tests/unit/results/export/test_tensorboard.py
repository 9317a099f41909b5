"""Event files, read back by TensorBoard itself."""

import sys

import pytest

from fedstage.execution.cli import main

pytest.importorskip("tensorboard", reason="the extra `tensorboard` is not installed")
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData


@pytest.fixture
def made(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    (folder / "results/tables/tiny").mkdir(parents=True)
    (folder / "results/tables/tiny/mini.md").write_text("| a |\n|---|\n| 1 |\n")
    assert main(["export", "tiny/mini", "--to", "tensorboard", "events"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("18 runs of tiny/mini are in events; to look at them: tensorboard ")
    return folder / "events/tiny/mini"


def read(place):
    return EventAccumulator(str(place)).Reload()


def test_each_run_has_its_scores_over_rounds(made):
    events = read(made / "fedavg/partition.alpha=0.1/seed_0")
    scores = [(one.step, one.value) for one in events.Scalars("test/top1_accuracy")]
    assert scores == [(1, 9.0), (2, 60.0)]
    assert [one.value for one in events.Scalars("validation/top1_accuracy")] == [9.0, 55.0]
    assert len(list(made.glob("*/*/seed_*"))) == 18


def test_settings_are_hyperparameters(made):
    metadata = read(made / "fedsdd/partition.alpha=1.0/seed_2").SummaryMetadata(
        "_hparams_/session_start_info"
    )
    data = HParamsPluginData.FromString(metadata.plugin_data.content)
    values = data.session_start_info.hparams
    assert values["method"].string_value == "fedsdd"
    assert values["client.learning_rate"].number_value == 0.05


def test_tables_are_texts(made):
    events = read(made / "tables")
    (text,) = events.Tensors("tables/mini/text_summary")
    assert text.tensor_proto.string_val[0].decode().startswith("| a |")


def test_a_second_export_into_a_folder_is_refused(made, capsys):
    assert main(["export", "tiny/mini", "--to", "tensorboard", "events"]) == 1
    error = capsys.readouterr().err
    assert error == (
        "fedstage export: events/tiny/mini: is there already; delete it, or name another folder\n"
    )


@pytest.mark.parametrize("package", ["tensorboard", "mlflow"])
def test_a_missing_extra_is_one_line(folder, monkeypatch, capsys, package):
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["export", "tiny/mini", "--to", package, "events"]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"fedstage export: --to {package}: needs the package {package} (")
    assert error.endswith(f"uv sync --extra {package}\n")
    assert error.count("\n") == 1
    assert not (folder / "events").exists()
