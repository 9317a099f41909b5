"""The server's model learns from what the participants of a round send."""

import json
from pathlib import Path

import pytest
import torch
from tests.shared.settings import federated
from tests.shared.stages import feature_training, recipe

from fedstage.algorithm.global_trainers.features import train_server, upload
from fedstage.data.partitions import CLIENTS_SCHEMA
from fedstage.models.initialisation import initialise
from fedstage.models.loading import new_model, state_of
from fedstage.randomness import torch_generator
from fedstage.settings.recipes import Recipe
from fedstage.storage.files import save_json
from fedstage.storage.tables import save_table
from fedstage.storage.tensors import load_tensors, save_tensors

UPPER = {"resnet_upper": {"blocks": 1, "width": 2}}
LOWER, DEEPER = ({"resnet_lower": {"blocks": blocks, "width": 2}} for blocks in (0, 1))
INFO = {"shape": [1, 8, 8], "classes": 3, "mean": [0.5], "std": [0.25]}
SETTINGS = federated(
    clients=3,
    participants=3,
    model=UPPER,
    architectures=[UPPER, LOWER, DEEPER],
    client_groups="drawn",
    global_models=3,
    server_model=True,
    local="gkt",
    server={"steps": 2, "batch_size": 7, "learning_rate": 0.1},
    on_divergence="drop",
    numerics={"device": "cpu"},
)
RECIPE = Recipe.model_validate(SETTINGS)
#: Samples of each client, in no order.
OWN = {0: [7, 2, 11], 1: [0, 5, 3, 1], 2: [4, 6, 8, 9, 10]}
GROUPS = {0: 1, 1: 2, 2: 1}


def model(number, key):
    one = new_model(RECIPE.architectures[number], INFO, torch.device("cpu"))
    initialise(one, torch_generator(key, "weights"))
    return one


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recipe(settings=json.dumps(SETTINGS), output=Path("recipe.yaml"))
    images = torch.randint(0, 256, (12, 1, 8, 8), generator=torch_generator(0, "images"))
    data = {"images": images.to(torch.uint8), "labels": torch.arange(12) % 3}
    save_tensors(Path("train.safetensors"), data, {})
    save_json(Path("info.json"), INFO)
    rows = [(client, sample, "train") for client, own in OWN.items() for sample in own]
    columns = dict(zip(("client", "sample", "role"), zip(*rows, strict=True), strict=True))
    save_table(Path("clients.parquet"), columns, CLIENTS_SCHEMA)
    save_tensors(Path("start.safetensors"), state_of(model(0, 9)), {"round": 4, "group": 0})
    return data


def updated(client, participant, diverged=False):
    """Write the update of a participant; nobody is in it if there is no client."""
    path = Path(f"participant_{participant}.safetensors")
    notes = {
        "round": 5,
        "group": GROUPS.get(client, 1),
        "participant": participant,
        "client": client,
    }
    tensors = {}
    if client is not None and not diverged:
        own = state_of(model(GROUPS[client], client))
        tensors = {f"model/{name}": value for name, value in own.items()}
    save_tensors(path, tensors, notes | ({"diverged_at": 1} if diverged else {"samples": 3}))
    return path


def trained(*updates):
    feature_training(
        recipe=Path("recipe.yaml"), round=5, group=0, start=Path("start.safetensors"),
        updates=list(updates), data=Path("train.safetensors"), clients=Path("clients.parquet"),
        info=Path("info.json"), output=Path("trained.safetensors"),
    )  # fmt: skip
    return load_tensors(Path("trained.safetensors"))


def expected(data, *clients):
    uploads = [
        upload(
            model(GROUPS[client], client), data["images"][OWN[client]],
            data["labels"][OWN[client]], RECIPE, INFO,
        )
        for client in clients
    ]  # fmt: skip
    return train_server(model(0, 9), uploads, RECIPE, INFO, 5)


def test_each_participants_samples_go_through_its_own_model_in_the_order_of_participants(world):
    files = [updated(1, 3), updated(None, 0), updated(2, 1), updated(0, 2)]
    weights, metadata = trained(*files)
    wanted, learnt = expected(world, 2, 0, 1)
    assert all(torch.equal(weights[name], value) for name, value in wanted.items())
    assert (metadata["round"], metadata["group"]) == (5, 0)
    assert metadata["loss"] == learnt["loss"]


def test_who_diverged_sends_nothing(world):
    weights, _ = trained(updated(1, 3), updated(2, 1, diverged=True))
    wanted, _ = expected(world, 1)
    assert all(torch.equal(weights[name], value) for name, value in wanted.items())
