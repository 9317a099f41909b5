"""Stages of heads in closed form, on real files."""

import pytest
import torch
from tests.shared.settings import one_shot
from tests.shared.stages import closed_form_model, feature_moments, initial_model, recipe

from fedstage.data.partitions import CLIENTS_SCHEMA
from fedstage.protocol.digests import as_json, canonical
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.storage.files import save_json
from fedstage.storage.tables import load_table, save_table
from fedstage.storage.tensors import load_tensors, save_tensors

SETTINGS = one_shot(
    clients=2,
    model="resnet8",
    client={"epochs": 1, "batch_size": 4, "learning_rate": 0.1},
    distillation={"closed_form": {"shrinkage": 0.1}},
    numerics={"device": "cpu"},
    seed=1,
)
CLASSES, WIDTH = 3, 64


@pytest.fixture
def world(tmp_path):
    """Client 0 has 8 images of classes 0 and 1, client 1 four of class 2."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (12, 1, 8, 8), generator=generator, dtype=torch.uint8)
    labels = torch.tensor([0, 1] * 4 + [2] * 4)
    save_tensors(tmp_path / "train.safetensors", {"images": images, "labels": labels})
    info = {"shape": [1, 8, 8], "classes": CLASSES, "mean": [0.3], "std": [0.2]}
    save_json(tmp_path / "info.json", info)
    columns = {"client": [0] * 8 + [1] * 4, "sample": list(range(12)), "role": ["train"] * 12}
    save_table(tmp_path / "clients.parquet", columns, CLIENTS_SCHEMA)
    write_recipe(tmp_path, SETTINGS)
    settings = as_json(
        {"model": canonical(OneShotRecipe.model_validate(SETTINGS).model), "seed": 1}
    )
    initial_model(
        settings=settings,
        group=0,
        info=tmp_path / "info.json",
        output=tmp_path / "start.safetensors",
    )
    return tmp_path


def write_recipe(folder, settings):
    recipe(
        settings=as_json(canonical(OneShotRecipe.model_validate(settings))),
        output=folder / "recipe.yaml",
    )


def measure(world, client):
    output = world / f"client_{client}.safetensors"
    feature_moments(
        recipe=world / "recipe.yaml", client=client, data=world / "train.safetensors",
        clients=world / "clients.parquet", start=world / "start.safetensors",
        info=world / "info.json", output=output,
    )  # fmt: skip
    return output


def close(world, moments):
    outputs = {"output": world / "model.safetensors", "rounds": world / "rounds.parquet"}
    closed_form_model(
        recipe=world / "recipe.yaml", moments=moments, start=world / "start.safetensors", **outputs
    )
    return load_tensors(outputs["output"]), load_table(outputs["rounds"]).to_pylist()


def test_clients_send_what_they_have_of_each_class(world):
    tensors, metadata = load_tensors(measure(world, 0))
    assert tensors["counts"].tolist() == [4, 4, 0]
    assert tensors["sums"].shape == (CLASSES, WIDTH)
    assert not tensors["sums"][2].any()
    assert torch.equal(tensors["products"], tensors["products"].T)
    assert (metadata["client"], metadata["samples"]) == (0, 8)


def test_only_the_last_layer_is_another(world):
    (tensors, metadata), rows = close(world, [measure(world, 0), measure(world, 1)])
    before, _ = load_tensors(world / "start.safetensors")
    other = {name for name in before if not torch.equal(before[name], tensors[name])}
    assert other == {"linear.weight", "linear.bias"}
    assert tensors.keys() == before.keys()
    assert metadata["members"] == [0, 1]
    model = sum(value.nbytes for value in before.values())
    sent = 4 * (CLASSES + CLASSES * WIDTH + WIDTH**2)
    assert [(row["phase"], row["bytes_up"], row["bytes_down"]) for row in rows] == [
        ("initial_model", 0, model),
        ("moments", sent, 0),
    ]
