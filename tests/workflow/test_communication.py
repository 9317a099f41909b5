"""Methods that follow one another, counted in jobs, and what all of them communicate."""

import shutil

import pandas as pd
import pytest
import yaml

from fedstage import results
from fedstage.storage.tensors import load_tensors

pytestmark = pytest.mark.workflow

CLIENTS = 4
MODEL = 4 * (64 * 10 + 10)  # logistic regression on 8x8 pixels, fp32
SERVER = {"server": {"steps": 4, "batch_size": 16, "learning_rate": 0.05, "augmentation": "none"}}
ROWS = {
    "fedavg": {},
    "fedkd": SERVER,
    "fedkd_4r_fedkd_then_fedavg": {},
    "fedkd_4r_fedavg_then_fedkd": SERVER,
}
ALL = ROWS | {
    "fens": {
        "aggregator": {"mlp": {"hidden": 5}},
        "aggregator_training": {"federated": {"rounds": 6, "batch_size": 8, "learning_rate": 0.1}},
    },
    "fedavg_os": {"choose": {"among": {"client.epochs": [1, 2]}}},
    "local_only": {},
}
#: Of bytes, of which three models up and three down are one round's.
CLAIM = {"text": "T.", "place": "P", "experiment": "tiny", "metric": "times_one_shot"}
CLAIMS = [
    CLAIM | {"id": "three", "value": {"method": "fedavg"}, "at_least": 3, "at_most": 3},
    CLAIM
    | {
        "id": "more",
        "ratio": {"method": "fedavg"},
        "to": {"method": "fedavg_os"},
        "at_least": 3,
        "stated": [2, 4],
    },
]


def write(project, rows, results=("table", "communication"), **base):
    """Make methods of the library the runs of the tiny experiment."""
    changed = {"aggregator_fraction": 0.2, "participants": CLIENTS, "rounds": 3, **base}
    project.configure(methods=list(rows), **changed)
    path = project.path / "config.yaml"
    config = yaml.safe_load(path.read_text())
    tiny = config["experiments"]["tiny"]
    tiny["methods"], tiny["results"] = rows, list(results)
    tiny["table"] = {"also": ["maximum"]}
    if "fens" in rows and "communication" in results:
        tiny["communication"] = {"reach": {"method": "fens"}}
        config["claims"] = CLAIMS
    path.write_text(yaml.safe_dump(config))
    return project


@pytest.fixture
def planned(project):
    """A function that says which jobs the runs of some methods would be."""
    return lambda *names, **base: write(
        project, {name: ALL[name] for name in names}, ["table"], **base
    ).plan()


def test_fedkd_and_then_fedavg_adds_three_rounds_to_fedkd(planned):
    alone = planned("fedkd", rounds=1).jobs
    after = planned("fedkd", "fedkd_4r_fedkd_then_fedavg").jobs
    assert after["local_model"] == alone["local_model"] == CLIENTS
    assert after["distilled_model"] == after["one_shot_evaluation"] == 1
    assert (after["local_training"], after["aggregation"]) == (3 * CLIENTS, 3)
    # Alone it needs all but FedKD's score.
    only = planned("fedkd_4r_fedkd_then_fedavg").jobs
    assert only["local_model"] == CLIENTS
    assert (only["distilled_model"], only["one_shot_evaluation"]) == (1, 0)


# --- a real run -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(new_project):
    project = write(new_project(), ALL)
    project.make()
    return project


@pytest.fixture(scope="module")
def table(made):
    """What the mean client sends and receives, by method and phase."""
    frame = results.costs("tiny", made.path).query("side == 'travel'")
    return frame.set_index(["method", "stage"])


@pytest.fixture(scope="module")
def runs(made):
    """The table of communication, with a row for each run."""
    frame = pd.read_csv(made.path / "results/communication/tiny/default.csv")
    return frame.set_index("method")


def moved(table, method, phase):
    try:
        rows = table.loc[[method]] if phase == "total" else table.loc[[(method, phase)]]
    except KeyError:  # nothing travels
        return 0, 0
    return rows["bytes_up"].sum(), rows["bytes_down"].sum()


def test_what_travels_is_what_the_equations_say(table):
    assert moved(table, "fedavg", "total") == (3 * MODEL, 3 * MODEL)
    counts = 4 * 10  # a label count a class
    assert moved(table, "fedkd", "total") == (MODEL + counts, MODEL)
    mlp = 4 * (CLIENTS * 10 * 5 + 5 * 10)
    assert moved(table, "fens", "ensemble") == (0, (CLIENTS - 1) * MODEL)
    assert moved(table, "fens", "round") == (6 * mlp, 6 * mlp)  # 6 rounds
    assert moved(table, "fens", "total") == (MODEL + 6 * mlp, CLIENTS * MODEL + 6 * mlp)
    assert moved(table, "fedavg_os", "total") == (MODEL, MODEL)
    assert moved(table, "local_only", "total") == (0, 0)


def test_the_best_round_is_that_of_validation_samples(runs):
    for method in ("fedavg", "fedkd_4r_fedkd_then_fedavg"):
        best = runs.loc[method]
        later = (3 - best["best_round"]) * 2 * MODEL
        assert best["bytes"] - best["bytes_to_best"] == pytest.approx(later)
    assert pd.isna(runs.loc["fens", "bytes_to_best"])


def test_a_start_is_the_file_that_the_other_method_ended_in(made):
    (student,) = made.files("results/distilled_models/*-seed0-*/recipe.yaml")[:1]
    recipes = [
        yaml.safe_load((made.path / path).read_text())["settings"]
        for path in made.files("results/training/*/recipe.yaml")
    ]
    starts = {recipe["start"] for recipe in recipes if "start" in recipe}
    assert len(starts) == 1
    assert load_tensors(made.path / starts.pop())[1]["members"] == [0, 1, 2, 3]
    assert student


def test_bytes_to_the_same_accuracy_are_measured_where_it_is_reached(runs):
    assert set(runs.index) == set(ALL)
    reached = runs.loc["fedavg", "times_one_shot_to_reach"]
    if runs.loc["fedavg", "top1_accuracy"] >= runs.loc["fens", "top1_accuracy"]:
        assert 1 <= reached <= 3
    assert runs.loc["fedavg", "bytes_to_reach"] / (2 * MODEL) == pytest.approx(reached, nan_ok=True)
    assert pd.isna(runs.loc["fens", "bytes_to_reach"])


def test_claims_about_bytes_are_judged_by_them(made):
    made.make("results/claims/tiny/default.md")
    claims = pd.read_csv(made.path / "results/claims/tiny/default.csv").set_index("claim")
    assert claims["mean"].to_dict() == {"three": 3.0, "more": 3.0}
    assert claims.loc["more", ["stated_low", "stated_high"]].tolist() == [2, 4]
    assert set(claims["metric"]) == {"times_one_shot"}


def test_communication_is_added_to_a_finished_run_without_training(made, tmp_path):
    shutil.copytree(made.path, tmp_path / "copy", symlinks=True)
    copy = type(made)(tmp_path / "copy")
    shutil.rmtree(copy.path / "results/communication")
    jobs = copy.plan().jobs
    assert jobs["table"] == 1
    assert jobs["local_training"] == jobs["evaluation"] == jobs["aggregator"] == 0
