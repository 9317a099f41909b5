"""Runs that do something other than their settings suggest are told, in one line each."""

import pytest
import yaml
from tests.shared.experiments import WORKFLOW, experiments

from fedstage.experiments.catalogue import load_catalogue
from fedstage.experiments.doubtful import doubtful

BASE = {
    "data": {"digits": {"held_out": 50}},
    "clients": 4,
    "partition": "iid",
    "participants": 2,
    "model": "cnn_small",
    "rounds": 1,
    "client": {"epochs": 1, "batch_size": 16, "learning_rate": 0.05},
    "server": {"steps": 25, "batch_size": 16, "learning_rate": 0.05},
}


ALL = ("fedavg", "feddf", "scaffold", "fedmd", "fedavg_median", "local_only")


def told(tmp_path, methods=ALL, axes=None, **base):
    """Return what is told of an experiment of several methods."""
    (tmp_path / "methods.yaml").write_text((WORKFLOW / "methods.yaml").read_text())
    grid = {"method": list(methods), "seed": [0, 1], **(axes or {})}
    one = {"title": "One", "base": BASE | base, "grid": grid}
    config = {"targets": ["one"], "experiments": {"one": one | {"scales": {"default": None}}}}
    return list(doubtful(load_catalogue(yaml.safe_load(yaml.safe_dump(config)), tmp_path).runs))


def test_methods_whose_average_counts_samples_twice_are_told_in_one_line(tmp_path):
    # The plain mean, no mean, and no federation at all count nothing twice.
    samples = {"participation": "by_samples", "participants": 3}
    assert told(tmp_path, **samples) == [
        "one/default: participation = by_samples draws clients by their samples, and "
        "aggregation.weights = samples weighs them so once more (fedavg, feddf); use aggregation: "
        "{weights: uniform}"
    ]
    assert told(tmp_path, **samples, aggregation={"weights": "uniform"}) == []


def test_a_median_of_two_models_is_told(tmp_path):
    assert told(tmp_path) == [
        "one/default: aggregation.rule = median: of at most two models it is their mean "
        "(fedavg_median); use at least 3 participants for each global model"
    ]
    assert told(tmp_path, participants=3) == []


def test_students_that_have_no_teacher_but_their_own_start_are_told(tmp_path):
    text = (
        "one/default: the only teacher of a student is the model from which it starts ({}); use "
        "more participants, global_models or checkpoints, or global.starts_from = previous"
    )
    taught = ("feddf", "fedsdd", "fedbe_gaussian", "fedavg")
    one = {"global_models": [1]}
    assert told(tmp_path, taught, one, participants=1) == [text.format(", ".join(taught[:3]))]
    assert told(tmp_path, taught, one) == [text.format("fedsdd")]
    apart = one | {"global.starts_from": ["previous"]}
    assert told(tmp_path, taught[:3], apart, participants=1) == []
    assert told(tmp_path, ("fedsdd",), one | {"ensemble.checkpoints": [2]}) == []


@pytest.mark.slow
def test_no_shipped_experiment_is_doubtful():
    every = experiments()[0].runs
    assert ("fedet_table2", "paper") in every
    assert list(doubtful(every)) == []
