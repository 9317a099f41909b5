"""Differential privacy from settings to tables."""

import math

import pandas as pd
import pytest
import torch
import yaml

from fedstage.results.accounting import poisson_epsilon
from fedstage.storage.tensors import load_tensors

pytestmark = pytest.mark.workflow

UNIFORM = {"weights": "uniform"}
DELTA = 0.1


def private(**how):
    return {"local": "fedavg", "privacy": {"client": {"delta": DELTA, **how}}}


METHODS = {
    "plain": {"local": "fedavg"},
    "still": private(clip=None, noise=0.0),
    "noisy": private(clip=0.5, noise=1.0) | {"participation": "poisson"},
}


def with_methods(project, methods):
    project.configure(
        methods=list(methods), aggregation=UNIFORM, execution={"granularity": "round"}
    )
    path = project.path / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config["experiments"]["tiny"]["methods"] |= methods
    path.write_text(yaml.safe_dump(config))


def models_by_privacy(project):
    """Return the final models by what their recipe states of privacy."""
    found = {}
    for recipe in (project.path / "results/training").glob("*/recipe.yaml"):
        stated = yaml.safe_load(recipe.read_text())["settings"].get("privacy")
        model = recipe.parent / "round_0002/group_0/aggregated.safetensors"
        found[stated["client"]["noise"] if stated else None] = load_tensors(model)[0]
    return found


def test_a_guarantee_stands_next_to_accuracy(project):
    with_methods(project, METHODS)
    table, costs = "results/tables/tiny/default", "results/costs/tiny/default"
    project.make(f"{table}.md", f"{table}.csv", f"{costs}.csv", f"{costs}.md")
    epsilon = poisson_epsilon(1.0, 2 / 4, 2, DELTA)
    for name in (table, costs):
        frame = pd.read_csv(project.path / f"{name}.csv").set_index("method")
        assert frame["epsilon"].isna().to_list() == [True, False, False]
        assert math.isinf(frame.loc["still", "epsilon"])
        assert frame.loc["noisy", "epsilon"] == pytest.approx(epsilon)
        assert frame["delta"].dropna().to_list() == [DELTA, DELTA]
        text = (project.path / f"{name}.md").read_text()
        assert f"{epsilon:.2f} (δ = 0.1)" in text
        assert "∞ (δ = 0.1)" in text
    models = models_by_privacy(project)
    assert models.keys() == {None, 0.0, 1.0}
    same = [torch.equal(models[None][name], models[0.0][name]) for name in models[None]]
    assert all(same)
    assert not any(torch.equal(models[None][name], models[1.0][name]) for name in models[None])
