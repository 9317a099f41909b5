"""Averages that weigh clients by their samples twice are told, in one line."""

import pytest
import yaml
from tests.shared.experiments import WORKFLOW, experiments

from fedstage.experiments.catalogue import load_catalogue
from fedstage.experiments.counted_twice import counted_twice

BASE = {
    "data": {"digits": {"held_out": 50}},
    "clients": 4,
    "partition": "iid",
    "participants": 2,
    "model": "cnn_small",
    "rounds": 1,
    "client": {"epochs": 1, "batch_size": 16, "learning_rate": 0.05},
    "server": {"steps": 5, "batch_size": 16, "learning_rate": 0.05},
}


def told(tmp_path, **base):
    """Return what is told of an experiment of several methods."""
    (tmp_path / "methods.yaml").write_text((WORKFLOW / "methods.yaml").read_text())
    methods = ["fedavg", "feddf", "scaffold", "fedmd", "fedavg_median", "local_only"]
    one = {"title": "One", "base": BASE | base, "grid": {"method": methods, "seed": [0, 1]}}
    config = {"targets": ["one"], "experiments": {"one": one | {"scales": {"default": None}}}}
    return list(
        counted_twice(load_catalogue(yaml.safe_load(yaml.safe_dump(config)), tmp_path).runs)
    )


def test_methods_whose_average_counts_samples_twice_are_told_in_one_line(tmp_path):
    # The plain mean, no mean, and no federation at all count nothing twice.
    assert told(tmp_path, participation="by_samples") == [
        "one/default: participation = by_samples draws clients by their samples, and "
        "aggregation.weights = samples weighs them so once more (fedavg, feddf); use aggregation: "
        "{weights: uniform}"
    ]
    assert told(tmp_path, participation="by_samples", aggregation={"weights": "uniform"}) == []
    assert told(tmp_path) == []


@pytest.mark.slow
def test_no_shipped_experiment_counts_samples_twice():
    every = experiments()[0].runs
    assert ("fedet_table2", "paper") in every
    assert list(counted_twice(every)) == []
