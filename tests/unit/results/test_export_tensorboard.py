"""Event files, read back by TensorBoard itself."""

import pytest

from fedstage.execution.cli import main

pytest.importorskip("tensorboard", reason="the extra `tensorboard` is not installed")
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


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


def test_a_second_export_into_a_folder_is_refused(made, capsys):
    assert main(["export", "tiny/mini", "--to", "tensorboard", "events"]) == 1
    error = capsys.readouterr().err
    assert error == (
        "fedstage export: events/tiny/mini: is there already; delete it, or name another folder\n"
    )
