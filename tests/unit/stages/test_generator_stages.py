"""Stages of generators on real files: from clients' samples to images that teach a student."""

import pytest
import torch
from tests.shared.settings import one_shot
from tests.shared.stages import (
    client_generator,
    distilled_model,
    generated,
    initial_model,
    recipe,
    synthesised,
)

from fedstage.algorithm.one_shot.traffic import ROUNDS_SCHEMA
from fedstage.data.partitions import CLIENTS_SCHEMA
from fedstage.protocol.digests import as_json, canonical
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.storage.files import save_json
from fedstage.storage.tables import load_table, save_table
from fedstage.storage.tensors import load_tensors, save_tensors

SETTINGS = one_shot(
    clients=2,
    model="logistic_regression",
    client={"epochs": 1, "batch_size": 4, "learning_rate": 0.1},
    generator={"cvae": {"latent": 2, "width": 2, "epochs": 1, "samples": 9}},
    public="generated",
    distillation="labels",
    server={"steps": 2, "batch_size": 100, "learning_rate": 0.1},
    numerics={"device": "cpu"},
    seed=1,
)
CLASSES = 3
#: Of width 2 and images of 8 x 8: a linear layer, three norms, four convolutions, 3 counters.
DECODER = 4 * ((2 + 3) * 4 + 4) + 4 * (4 * 4 + 4 * 2 + 2 * 2 + 2 * 1) * 16 + 4
DECODER += 4 * 4 * (4 + 2 + 2) + 3 * 8


@pytest.fixture
def world(tmp_path):
    """Client 0 has 4 images of classes 0 and 1, client 1 two of class 2."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (6, 1, 8, 8), generator=generator, dtype=torch.uint8)
    labels = torch.tensor([0, 1, 0, 0, 2, 2])
    save_tensors(tmp_path / "train.safetensors", {"images": images, "labels": labels})
    names = [str(label) for label in range(CLASSES)]
    info = {
        "shape": [1, 8, 8], "classes": CLASSES, "class_names": names, "mean": [0.3], "std": [0.2],
    }  # fmt: skip
    save_json(tmp_path / "info.json", info)
    columns = {"client": [0] * 4 + [1] * 2, "sample": list(range(6)), "role": ["train"] * 6}
    save_table(tmp_path / "clients.parquet", columns, CLIENTS_SCHEMA)
    settings = OneShotRecipe.model_validate(SETTINGS)
    recipe(settings=as_json(canonical(settings)), output=tmp_path / "recipe.yaml")
    return tmp_path


def train(world, client):
    output = world / f"client_{client}.safetensors"
    client_generator(
        recipe=world / "recipe.yaml", client=client, data=world / "train.safetensors",
        info=world / "info.json", clients=world / "clients.parquet", output=output,
    )  # fmt: skip
    return output


def generate(world, clients=(0, 1), name="made"):
    folder = world / name
    folder.mkdir()
    generated(
        recipe=world / "recipe.yaml", info=world / "info.json",
        generators=[train(world, client) for client in clients],
        output=folder / "train.safetensors", histogram=folder / "histogram.parquet",
        picture=folder / "images.png", rounds=folder / "rounds.parquet",
    )  # fmt: skip
    return folder


def test_a_client_writes_what_travels(world):
    tensors, metadata = load_tensors(train(world, 0))
    assert tensors["label_counts"].tolist() == [3, 1, 0]
    assert {name.partition(".")[0] for name in tensors} == {"decoder", "label_counts"}
    assert (metadata["client"], metadata["samples"]) == (0, 4)


def test_the_server_makes_labelled_images_in_proportion_and_of_classes_that_clients_have(world):
    folder = generate(world)
    made, _ = load_tensors(folder / "train.safetensors")
    assert made["images"].shape == (9, 1, 8, 8)
    assert made["images"].dtype == torch.uint8
    assert made["clients"].tolist() == [0] * 6 + [1] * 3
    assert set(made["labels"][:6].tolist()) <= {0, 1}
    assert made["labels"][6:].tolist() == [2, 2, 2]
    rows = load_table(folder / "histogram.parquet").to_pylist()
    assert sum(row["samples"] for row in rows) == 9
    assert rows[-1] == {"client": 1, "role": "generated", "label": 2, "samples": 3}


def test_what_travels_is_the_decoder_and_the_counts(world):
    table = load_table(generate(world) / "rounds.parquet")
    assert table.schema.names == ROUNDS_SCHEMA.names
    rows = {row["phase"]: row for row in table.to_pylist()}
    assert set(rows) == {"generator", "label_counts"}
    assert rows["label_counts"]["bytes_up"] == 4 * CLASSES
    assert rows["generator"]["bytes_up"] == DECODER
    assert {(row["participants"], row["bytes_down"]) for row in rows.values()} == {(2, 0)}


def test_a_student_learns_the_labels_and_needs_no_ensemble(world):
    folder = generate(world)
    start = world / "start.safetensors"
    initial_model(
        settings='{"model": "logistic_regression", "seed": 1}', group=0, info=world / "info.json",
        output=start,
    )  # fmt: skip
    settings = OneShotRecipe.model_validate(SETTINGS | {"student": "logistic_regression"})
    recipe(settings=as_json(canonical(settings)), output=world / "recipe.yaml")
    output = world / "student.safetensors"
    distilled_model(
        recipe=world / "recipe.yaml", info=world / "info.json", start=start,
        public=folder / "train.safetensors", output=output,
    )  # fmt: skip
    made = load_tensors(folder / "train.safetensors")[0]
    x = ((made["images"].double() / 255 - 0.3) / 0.2).flatten(1)
    first = load_tensors(start)[0]
    model = torch.nn.Linear(64, CLASSES).double()
    model.load_state_dict({name.partition(".")[2]: value for name, value in first.items()})
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        sgd.zero_grad()
        torch.nn.functional.cross_entropy(model(x), made["labels"]).backward()
        sgd.step()
    taught = load_tensors(output)[0]
    torch.testing.assert_close(taught["linear.weight"].double(), model.weight, atol=1e-5, rtol=1e-4)


def test_the_server_generates_against_models_and_writes_the_student_and_its_images(world):
    small = {"latent": 2, "width": 2, "steps": 2, "batch_size": 5}
    changes = {
        "generator": {"coboosting": small},
        "distillation": "cotrained",
        "student": "logistic_regression",
        "server": {"epochs": 3, "batch_size": 4, "learning_rate": 0.1},
    }
    settings = OneShotRecipe.model_validate(SETTINGS | changes)
    recipe(settings=as_json(canonical(settings)), output=world / "recipe.yaml")
    files = [world / f"model_{group}.safetensors" for group in range(3)]
    for group, path in enumerate(files):
        initial_model(
            settings='{"model": "logistic_regression", "seed": 1}', group=group,
            info=world / "info.json", output=path,
        )  # fmt: skip
    names = ("output", "student", "weights")
    written = {name: world / f"{name}.safetensors" for name in names}
    synthesised(
        recipe=world / "recipe.yaml", info=world / "info.json", models=files[1:], start=files[0],
        histogram=world / "histogram.parquet", picture=world / "images.png", **written,
    )  # fmt: skip
    made, _ = load_tensors(written["output"])
    assert made["images"].shape == (3 * 5, 1, 8, 8)
    assert made["images"].dtype == torch.uint8
    rows = load_table(world / "histogram.parquet").to_pylist()
    counts = torch.bincount(made["labels"], minlength=CLASSES)
    assert {row["label"]: row["samples"] for row in rows} == {
        label: int(number) for label, number in enumerate(counts) if number
    }
    student, metadata = load_tensors(written["student"])
    assert metadata["members"] == [0, 1]
    start = load_tensors(files[0])[0]
    assert not torch.equal(student["linear.weight"], start["linear.weight"])
    weights = load_tensors(written["weights"])[0]["weights"]
    assert weights.shape == (2,)
    assert (weights != 0.5).any()
    assert (world / "images.png").stat().st_size
