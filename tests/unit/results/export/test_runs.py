"""What is exported of runs."""

import pytest

from fedstage.errors import FedstageError
from fedstage.plan.training import participants_table
from fedstage.results.at_hand.runs import last_part, read_target
from fedstage.results.export.runs import exported, flat
from fedstage.results.export.targets import files_of
from fedstage.stages.aggregation import PARTICIPANTS_SCHEMA
from fedstage.storage.tables import save_rows


def run_of(folder, method="fedavg", alpha=0.1, seed=0):
    wanted = {"method": method, "partition.alpha": alpha, "seed": seed}
    runs = read_target("tiny/mini", folder).runs
    return next(run for run in runs if run.settings == wanted)


def write_losses(folder, round_, losses):
    """Write the table of a round: pairs of loss and samples."""
    path = folder / participants_table(last_part(run_of(folder)).recipe, round_, 0)
    path.parent.mkdir(parents=True)
    same = dict.fromkeys(PARTICIPANTS_SCHEMA.names, 0) | {"dropped": False}
    rows = [same | {"loss": loss, "samples": samples} for loss, samples in losses]
    save_rows(path, rows, PARTICIPANTS_SCHEMA)


def test_a_run_has_a_name_settings_and_scalars_of_both_roles(folder):
    run = exported(run_of(folder), folder)
    assert run.name == "fedavg/partition.alpha=0.1/seed_0"
    assert run.settings["client.learning_rate"] == 0.05
    assert run.settings["rounds"] == 2
    assert (run.settings["method"], run.settings["partition.alpha"]) == ("fedavg", 0.1)
    assert run.scalars["test/top1_accuracy"] == [(1, 9.0), (2, 60.0)]
    assert run.scalars["validation/top1_accuracy"] == [(1, 9.0), (2, 55.0)]
    assert "test/auc" not in run.scalars  # null
    assert "validation/loss" not in exported(run_of(folder, seed=1), folder).scalars


def test_training_losses_are_means_over_samples(folder):
    write_losses(folder, 1, [(1.0, 30), (2.0, 10), (None, 60)])
    write_losses(folder, 2, [])  # nobody came
    assert exported(run_of(folder), folder).scalars["training/loss"] == [(1, 1.25)]


def test_settings_are_flat():
    assert flat({"a": {"b": 1, "c": {"d": "x"}}, "e": None, "f": [1, 2], "g": False}) == {
        "a.b": 1,
        "a.c.d": "x",
        "f": "[1,2]",
        "g": False,
    }


def test_a_run_that_is_not_finished_is_one_line(folder):
    run = run_of(folder)
    (folder / "results/training/fedavg0.10-test.parquet").unlink()
    with pytest.raises(FedstageError, match=r"fedavg0\.10-test\.parquet"):
        exported(run, folder)


def test_files_are_those_of_the_scale_only(folder):
    places = ["tables/tiny/mini.md", "tables/tiny/mini_long.md", "figures/tiny/mini_accuracy.png"]
    places += ["tables/other/mini.md", "descriptions/tiny/mini_long.runs.json"]
    for place in places:
        path = folder / "results" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    found = [str(path.relative_to(folder / "results")) for path in files_of("tiny/mini", folder)]
    assert found == [
        "descriptions/tiny/mini.runs.json",
        "figures/tiny/mini_accuracy.png",
        "tables/tiny/mini.md",
    ]
