"""The stages on samples that are no images: features of patients, and bags of tiles.

Two clients by the column of the data set, two rounds, evaluation on both versions of the test set.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.shared.settings import distilled
from tests.shared.stages import make_all

from fedstage.data.datasets.images import Dataset, Images
from fedstage.plan.data_files import clients_table, data_file
from fedstage.plan.scores import client_accuracy, evaluation
from fedstage.plan.training import global_model, logits
from fedstage.settings.recipes import Recipe
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import load_tensors

SAMPLES, FEATURES = 24, 3
RECIPES = {
    "features": {
        "data": {"name": "heart_disease"},
        "clients": 4,
        "participants": 4,
        "model": {"name": "logistic_regression", "outputs": 1},
    },
    "bags": {
        "data": {"name": "camelyon16"},
        "clients": 2,
        "participants": 2,
        "model": {"name": "deep_mil", "width": 5},
    },
}
SETTINGS = {
    "partition": {"name": "natural"},
    "client": {"steps": 6, "batch_size": 4, "learning_rate": 0.5},
    "numerics": {"device": "cpu"},
    "seed": 1,
}


def drawn(kind, seed, samples, shift=0.0):
    """Return samples whose class shows in their first feature, of all clients in turn."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(samples) % 2
    sizes = torch.randint(1, 5, (samples,), generator=generator)
    counts = sizes if kind == "bags" else torch.ones(samples, dtype=torch.int64)
    features = torch.randn(int(counts.sum()), FEATURES, generator=generator) + shift
    features[:, 0] += 3.0 * labels.repeat_interleave(counts) - 1.5
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])
    clients = (torch.arange(samples) // 2) % RECIPES[kind]["clients"]
    return Images(features, labels, clients, starts if kind == "bags" else None)


def loaded(kind):
    train, test = drawn(kind, 0, SAMPLES), drawn(kind, 1, 10)
    other = drawn(kind, 1, 10, shift=8.0) if kind == "features" else None
    return Dataset(train, test, train.none.images, train.none, ("no", "yes"), test_own=other)


@pytest.fixture(params=RECIPES)
def world(request, tmp_path, monkeypatch):
    """A folder with two rounds, as the working directory; return the kind of samples and recipe."""
    kind = request.param
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fedstage.stages.data.load", lambda chosen, folder: loaded(kind))
    recipe = Recipe.model_validate(SETTINGS | RECIPES[kind])
    make_all(global_model(recipe, 2, 0))
    return kind, recipe


def evaluated(recipe, role):
    metrics = evaluation(recipe, "global_model", role, 2, 2)
    make_all(metrics)
    (row,) = load_table(metrics).to_pylist()
    return row


def samples_in(recipe, part):
    return load_tensors(data_file(recipe.data, part))[0]


def test_two_rounds_learn_what_there_is_to_learn(world):
    _, recipe = world
    row = evaluated(recipe, "test")
    assert row["top1_accuracy"] >= 80
    assert row["auc"] > 80
    assert (row["samples"], row["participants"]) == (10, recipe.clients)


def test_both_versions_of_the_test_samples_are_scored_with_the_same_model(world):
    kind, recipe = world
    if kind == "bags":
        assert samples_in(recipe, "test_own")["labels"].shape == (0,)
        return
    weights, _ = load_tensors(global_model(recipe, 2, 0))
    for role in ("test", "test_own"):
        samples = samples_in(recipe, role)
        z = samples["images"].numpy() @ weights["linear.weight"].numpy()[0]
        right = (z + weights["linear.bias"].numpy() > 0) == samples["labels"].numpy()
        assert evaluated(recipe, role)["top1_accuracy"] == pytest.approx(100 * np.mean(right))
    assert evaluated(recipe, "test_own") != evaluated(recipe, "test")


def test_each_client_is_scored_on_its_own_test_samples(world):
    kind, recipe = world
    output = logits(recipe, 2, 0, "aggregated", "test")
    make_all(output)
    make_all(client_accuracy(recipe, 2))
    test = drawn(kind, 1, 10)
    right = load_tensors(output)[0]["logits"][0].argmax(1) == test.labels
    expected = [
        (client, int(own.sum()), 100 * float(right[own].double().mean()))
        for client in range(recipe.clients)
        for own in [test.clients == client]
    ]
    rows = load_table(client_accuracy(recipe, 2)).to_pylist()
    found = [(row["client"], row["samples"], row["accuracy"]) for row in rows
             if row["of"] == "test"]  # fmt: skip
    assert found == expected
    assert {row["of"] for row in rows} == {"test", "class"}


# --- public samples that are private --------------------------------------------------------------


def test_public_samples_that_are_clients_own_are_counted_once(tmp_path, monkeypatch, caplog):
    """Another division of a data set: of its 100 training images some are the clients'."""
    monkeypatch.chdir(tmp_path)
    public = {"digits": {"test": 1697, "held_out": 0, "split_seed": 7}}
    taught = {"ensemble": "clients", "global": "basic", "public": public}
    made = Recipe.model_validate(distilled(**taught))
    make_all(global_model(made, 2, 0))
    images, own = (
        load_tensors(data_file(data, "train"))[0]["images"].flatten(1).tolist()
        for data in (made.public, made.data)
    )
    mine = [own[row["sample"]] for row in load_table(Path(clients_table(made))).to_pylist()]
    expected = sum(image in mine for image in images)
    assert 0 < expected < len(images)
    lines = [record.message for record in caplog.records if "training samples" in record.message]
    assert lines == [f"{expected} of {len(images)} public samples are clients' training samples"]
