"""The stages on samples that are no images: features of patients, and bags of tiles.

Two clients by the column of the data set, two rounds, evaluation on both versions of the test set.
"""

import json

import numpy as np
import pytest
import torch
from tests.shared.stages import (
    aggregation,
    evaluation,
    initial_model,
    local_training,
    logits,
    participation,
    partition,
)

from fedstage.data.datasets.images import Dataset, Images
from fedstage.data.samples import read_labelled
from fedstage.stages.dataset import dataset
from fedstage.stages.recipe import recipe
from fedstage.storage.files import load_json
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
    """A folder with two rounds; return it, the kind of samples and the settings of the recipe."""
    kind, settings = request.param, SETTINGS | RECIPES[request.param]
    monkeypatch.setattr("fedstage.stages.dataset.load", lambda chosen, folder: loaded(kind))
    at = tmp_path.joinpath
    parts = ("train", "test", "held_out", "test_own", "server_validation")
    dataset(
        settings=json.dumps(settings["data"]), info=at("info.json"),
        **{part: at(f"{part}.safetensors") for part in parts},
    )  # fmt: skip
    recipe(settings=json.dumps(settings), output=at("recipe.yaml"))
    chosen = {name: settings[name] for name in ("clients", "partition", "seed")} | {
        "validation": 0.0
    }
    partition(
        settings=json.dumps(chosen), train=at("train.safetensors"), output=at("clients.parquet"),
        histogram=at("histogram.parquet"),
    )  # fmt: skip
    count = settings["clients"]
    participation(
        clients=count, participants=count, seed=1, first=1, last=2, output=at("plan.parquet")
    )
    model = json.dumps({"model": settings["model"], "seed": 1})
    initial_model(settings=model, group=0, info=at("info.json"), output=at("w0.safetensors"))
    for round_ in (1, 2):
        start = at(f"w{round_ - 1}.safetensors")
        updates = [at(f"update_{round_}_{participant}.safetensors") for participant in range(count)]
        local_training(
            recipe=at("recipe.yaml"), round=round_, group=0, participants=list(range(count)),
            start=start,
            data=at("train.safetensors"), info=at("info.json"), clients=at("clients.parquet"),
            participation=at("plan.parquet"), outputs=updates,
        )  # fmt: skip
        aggregation(
            recipe=at("recipe.yaml"), info=at("info.json"), start=start, updates=updates,
            output=at(f"w{round_}.safetensors"), participants=at(f"participants_{round_}.parquet"),
        )  # fmt: skip
    return tmp_path, kind, settings


def evaluated(folder, role):
    at = folder.joinpath
    evaluation(
        recipe=at("recipe.yaml"), evaluated="global_model", role=role, rounds=2, every=2,
        models=[at("w2.safetensors")],
        data=at(f"{role}.safetensors"), info=at("info.json"), clients=at("clients.parquet"),
        histogram=at("histogram.parquet"), participants=[at("participants_2.parquet")],
        output=at(f"metrics_{role}.parquet"),
    )  # fmt: skip
    (row,) = load_table(at(f"metrics_{role}.parquet")).to_pylist()
    return row


def test_two_rounds_learn_what_there_is_to_learn(world):
    folder, _, settings = world
    row = evaluated(folder, "test")
    assert row["top1_accuracy"] >= 80
    assert row["auc"] > 80
    assert (row["samples"], row["participants"]) == (10, settings["clients"])


def test_every_client_trains_on_its_own_samples(world):
    folder, _, settings = world
    count = settings["clients"]
    rows = load_table(folder / "participants_1.parquet").to_pylist()
    assert [row["samples"] for row in rows] == [SAMPLES // count] * count
    clients = load_table(folder / "clients.parquet").to_pydict()
    owner = dict(zip(clients["sample"], clients["client"], strict=True))
    assert [owner[sample] for sample in range(8)] == [sample // 2 % count for sample in range(8)]


def test_both_versions_of_the_test_samples_are_scored_with_the_same_model(world):
    folder, kind, _ = world
    if kind == "bags":
        assert load_tensors(folder / "test_own.safetensors")[0]["labels"].shape == (0,)
        return
    weights, _ = load_tensors(folder / "w2.safetensors")
    for role in ("test", "test_own"):
        samples, _ = load_tensors(folder / f"{role}.safetensors")
        z = samples["images"].numpy() @ weights["linear.weight"].numpy()[0]
        right = (z + weights["linear.bias"].numpy() > 0) == samples["labels"].numpy()
        assert evaluated(folder, role)["top1_accuracy"] == pytest.approx(100 * np.mean(right))
    assert evaluated(folder, "test_own") != evaluated(folder, "test")


def test_logits_of_members_are_those_of_the_samples(world):
    folder, _, _ = world
    output = folder / "logits.safetensors"
    logits(
        recipe=folder / "recipe.yaml", members="aggregated", models=[folder / "w2.safetensors"],
        data=folder / "test.safetensors", info=folder / "info.json", output=output,
    )  # fmt: skip
    said = load_tensors(output)[0]["logits"]
    assert said.shape == (1, 10, 2)
    assert said[..., 0].eq(0).all()


def test_samples_are_read_as_they_were_written(world):
    folder, kind, _ = world
    samples, labels = read_labelled(folder / "train.safetensors", None, torch.device("cpu"))
    assert len(samples) == len(labels) == SAMPLES
    assert load_json(folder / "info.json")["shape"] == [FEATURES]
    expected = drawn(kind, 0, SAMPLES)
    found = samples.instances if kind == "bags" else samples
    assert torch.equal(found, expected.images)
