from pathlib import Path

import pytest

from fedstage.experiments.catalogue import load_catalogue, trained_runs
from fedstage.experiments.disk_space import describe_size
from fedstage.experiments.targets import asked_runs
from fedstage.models import size
from fedstage.plan.training_folder import owners, training_id

WORKFLOW = Path(__file__).parents[3] / "workflow"
LINEAR = 4 * (64 * 10 + 10)  # bytes of logistic regression on 8x8 images, 10 classes


def catalogue(methods=("fedavg",), **changes):
    base = {
        "data": "digits",
        "clients": 4,
        "partition": "iid",
        "participants": 2,
        "model": "logistic_regression",
        "rounds": 3,
        "client": {"epochs": 1, "batch_size": 8, "learning_rate": 0.1},
        "server": {"steps": 1, "batch_size": 8, "learning_rate": 0.1},
        "seed": 0,
    }
    keep = changes.pop("keep", "all")
    results = changes.pop("results", ["table"])
    scales = changes.pop("scales", {"default": {}, "long": {"base": {"rounds": 5}}})
    experiment = {
        "title": "x",
        "base": base | changes,
        "grid": {"method": list(methods)},
        "results": results,
        "scales": scales,
    }
    config = {
        "targets": ["one"],
        "keep": keep,
        "execution": {"granularity": "round"},
        "experiments": {"one": experiment},
    }
    return load_catalogue(config, WORKFLOW, "")


def size_of(known):
    return describe_size(known, trained_runs(known, "one"))


@pytest.mark.parametrize(
    ("changes", "models", "size"),
    [
        ({}, 9, 9 * LINEAR),
        ({"keep": "models"}, 3, 3 * LINEAR),
        ({"keep": "needed", "evaluate_every": 2}, 2, 2 * LINEAR),
        ({"keep": "needed", "evaluate_every": 3, "evaluate": "clients"}, 3, 3 * LINEAR),
        ({"methods": ["scaffold"]}, 9, 3 * LINEAR + 6 * 2 * LINEAR),
        ({"methods": ["fedavg_stc"]}, 9, 3 * LINEAR + 6 * 2 * LINEAR),
        ({"methods": ["fedavg", "feddf"]}, 9 + 1 + 2 * 4, None),
        ({"methods": ["local_only"]}, 4, 4 * LINEAR),
        ({"methods": ["local_only"], "quantisation": "int8"}, 8, 4 * (LINEAR + LINEAR // 4)),
        ({"methods": ["local_only"], "evaluate_client": 1}, 1, LINEAR),
        (
            {"methods": ["local_only"], "evaluate_client": 1, "quantisation": "int8"},
            2,
            LINEAR + LINEAR // 4,
        ),
        ({"methods": ["centralised"]}, 1, LINEAR),
    ],
)
def test_models_and_bytes_are_counted_once(changes, models, size):
    text = size_of(catalogue(**changes))
    assert text.startswith(f"{models} models, ")
    if size is not None:
        assert f": {size / 1e9:.2f} GB in all" in text


def test_participants_of_groups_that_are_drawn_are_filled_once_in_as_many_times():
    """Two participants have six participants in three groups: a round's updates are two models."""
    groups = {"global_models": 3, "client_groups": "drawn", "rounds": 5000}
    text = size_of(catalogue(**groups, scales={"default": {}}))
    models, updates = 5000 * 3, 5000 * 6
    size = models * LINEAR + updates * (LINEAR // 3)
    assert text.startswith(f"{models + updates} models, ")
    assert f": {size / 1e9:.2f} GB in all" in text


def test_size_of_a_larger_model():
    text = size_of(catalogue(data="cifar10", model="resnet56", rounds=100))
    assert text == "300 models, with all participants' updates: 1.03 GB in all"


def test_what_is_not_trained_is_not_counted():
    computed = catalogue(results=["properties"])
    assert size_of(computed).startswith("0 models, ")


def test_data_of_unknown_shape_are_named():
    text = size_of(catalogue(data={"parquet": {"folder": "mine"}}))
    end = "participants' updates; size unknown for shapes that only the data determine (parquet)"
    assert text.endswith(end)


def test_models_of_unknown_size_are_named(monkeypatch):
    """A new model has no case in `models.size`, and estimates are no reason to need one."""
    monkeypatch.setattr(size, "LogisticRegression", type("Other", (), {}))
    told = size_of(catalogue())
    assert "9 models" in told
    assert "updates, without models whose size is not known (logistic_regression)" in told


def test_runs_of_targets_and_arguments_are_asked():
    known = catalogue()
    assert [run.length.rounds for run in asked_runs(known, "")] == [3, 5]  # it shares the rounds
    table = "results/tables/one/long.md"
    assert [run.length.rounds for run in asked_runs(known, table)] == [3, 5]
    job = "--target-jobs tables:experiment=one,scale=long"
    assert [run.length.rounds for run in asked_runs(known, job)] == [3, 5]


def test_a_file_or_a_rule_of_a_recipe_asks_for_its_runs():
    known = catalogue(methods=["feddf"])
    recipe = next(iter(known.runs["one", "long"])).recipe
    for name in (training_id(recipe), training_id(owners(recipe)[1])):
        assert len(asked_runs(known, f"results/training/{name}/round_0001/x")) == 2
        assert (
            len(asked_runs(known, f"--target-jobs segment_0001_0002_groups_0:recipe={name}")) == 2
        )
