"""Differential privacy from settings to tables."""

import math
from collections import Counter

import pandas as pd
import pytest
import torch
import yaml

from fedstage.stages.measured import poisson_epsilon
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import load_tensors

pytestmark = pytest.mark.workflow

UNIFORM = {"weights": "uniform"}
DELTA = 0.1


def private(**how):
    return {"local": "fedavg", "privacy": {"client": {"delta": DELTA, **how}}}


EXAMPLE = {"clip": 1.0, "noise": 1.0, "delta": 1e-4}
METHODS = {
    "plain": {"local": "fedavg"},
    "still": private(clip=None, noise=0.0),
    "noisy": private(clip=0.5, noise=1.0) | {"participation": "poisson"},
    "samples": {"local": "fedavg", "privacy": {"example": EXAMPLE}},
}


def with_methods(project, methods):
    project.configure(
        methods=list(methods), aggregation=UNIFORM, execution={"granularity": "round"},
        results=["table", "costs"],
    )  # fmt: skip
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
        for unit, how in (stated or {None: None}).items():
            found[unit and f"{unit} {how['noise']}"] = load_tensors(model)[0]
    return found


def participants(project, protected, columns):
    """Return the rows of the tables of participants of the run that protects this."""
    return [
        row
        for recipe in (project.path / "results/training").glob("*/recipe.yaml")
        for stated in [yaml.safe_load(recipe.read_text())["settings"].get("privacy") or {}]
        if protected in stated
        for path in recipe.parent.glob("round_*/group_0/participants.parquet")
        for row in load_table(path, columns).to_pylist()
    ]


def epsilon_of_samples(project):
    """Return the largest epsilon of the clients, from who took part with how many samples."""
    rows = participants(project, "example", ["client", "samples"])
    times = Counter(row["client"] for row in rows)
    samples = {row["client"]: row["samples"] for row in rows}
    batch = 32  # of one epoch in each round
    return max(
        poisson_epsilon(
            EXAMPLE["noise"],
            min(1.0, batch / samples[client]),
            rounds * math.ceil(samples[client] / batch),
            EXAMPLE["delta"],
        )
        for client, rounds in times.items()
    )


def test_a_guarantee_stands_next_to_accuracy(project):
    with_methods(project, METHODS)
    table, costs = "results/tables/tiny/default", "results/costs/tiny/default"
    project.make(f"{table}.md", f"{table}.csv", f"{costs}.csv", f"{costs}.md")
    epsilon = poisson_epsilon(1.0, 2 / 4, 2, DELTA)
    for name in (table, costs):
        frame = pd.read_csv(project.path / f"{name}.csv").set_index("method")
        assert frame["epsilon"].isna().to_list() == [True, False, False, True]
        assert math.isinf(frame.loc["still", "epsilon"])
        assert frame.loc["noisy", "epsilon"] == pytest.approx(epsilon)
        assert frame["delta"].dropna().to_list() == [DELTA, DELTA, EXAMPLE["delta"]]
        of_samples = frame.loc["samples", "example_epsilon"]
        assert of_samples == pytest.approx(epsilon_of_samples(project))
        assert (
            f"{of_samples:.2f} a sample (δ = 0.0001)" in (project.path / f"{name}.md").read_text()
        )
        text = (project.path / f"{name}.md").read_text()
        assert f"{epsilon:.2f} (δ = 0.1 > 0.001)" in text
        assert "∞ (δ = 0.1 > 0.001)" in text
    models = models_by_privacy(project)
    assert models.keys() == {None, "client 0.0", "client 1.0", "example 1.0"}
    plain = models.pop(None)
    still = models.pop("client 0.0")
    assert all(torch.equal(plain[name], still[name]) for name in plain)
    for noisy in models.values():
        assert not any(torch.equal(plain[name], noisy[name]) for name in plain)
