"""What is exported of runs."""

from fedstage.results.at_hand.runs import read_target
from fedstage.results.export import files_of
from fedstage.results.exported_runs import exported


def run_of(folder, method="fedavg", alpha=0.1, seed=0):
    wanted = {"method": method, "partition.alpha": alpha, "seed": seed}
    runs = read_target("tiny/mini", folder).runs
    return next(run for run in runs if run.settings == wanted)


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
