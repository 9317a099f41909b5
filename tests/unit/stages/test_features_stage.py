"""The stage of features: encoders of libraries and of plugins, parts, and what is refused."""

from importlib.util import find_spec

import pytest
import torch
from tests.shared.settings import CLIENT, distilled

from fedstage.errors import FedstageError
from fedstage.models import encoders
from fedstage.models.encoders import libraries
from fedstage.plan.data_files import data_file, public_id
from fedstage.plan.inputs import FeaturesInputs
from fedstage.settings.data import DataOption
from fedstage.settings.recipes import Recipe
from fedstage.settings.validation import validate
from fedstage.stages import features as stage
from fedstage.storage.files import load_json, save_json
from fedstage.storage.tensors import load_tensors, save_tensors

PARTS = ("train", "test", "held_out", "server_validation", "test_own")
CPU = torch.device("cpu")


def features(library="torchvision", architecture="resnet18", weights="own.pth", **more):
    encoder = {library: {"architecture": architecture, "weights": weights}}
    return {"features": {"of": "digits", "encoder": encoder, "numerics": {"device": "cpu"}, **more}}


def option(*encoder, **more):
    return validate(DataOption, {"data": features(*encoder, **more)}, "here")


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Grey images of 8 pixels, and no test samples of each client's own."""
    monkeypatch.setenv("FEDSTAGE_DATA", str(tmp_path))
    for part, count in zip(PARTS, (7, 4, 2, 1, 0), strict=True):
        images = torch.randint(0, 255, (count, 1, 8, 8), dtype=torch.uint8)
        tensors = {"images": images, "labels": torch.arange(count) % 2}
        save_tensors(tmp_path / f"of/{part}.safetensors", tensors)
    save_json(tmp_path / "of/info.json", {"shape": [1, 8, 8], "classes": 2, "client_names": ["a"]})
    return tmp_path


def encoded(world, chosen):
    names = {part: f"{part}.safetensors" for part in PARTS} | {"info": "info.json"}
    read = FeaturesInputs(raw=None, **{key: world / "of" / name for key, name in names.items()})
    made = {key: world / "made" / name for key, name in names.items()}
    stage.features(chosen, read, made)
    return {part: load_tensors(made[part])[0]["images"] for part in PARTS}, load_json(made["info"])


@pytest.fixture
def network(monkeypatch):
    """A small network in place of a library's."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 5))
    monkeypatch.setattr(libraries, "network", lambda settings, folder: net)
    return net


def test_all_parts_are_encoded_and_what_else_is_known_stays(world, network):
    found, info = encoded(world, option())
    assert {part: list(own.shape) for part, own in found.items()} == {
        "train": [7, 5], "test": [4, 5], "held_out": [2, 5], "server_validation": [1, 5],
        "test_own": [0, 5],
    }  # fmt: skip
    assert (info["shape"], info["mean"], info["client_names"]) == ([5], [], ["a"])
    images = load_tensors(world / "of/test.safetensors")[0]["images"]
    torch.testing.assert_close(found["test"], network(images.expand(-1, 3, -1, -1) / 255))


def test_parts_of_an_interrupted_job_are_kept_while_weights_are_the_same(
    world, network, monkeypatch
):
    seen, encode = [], stage.encode

    def until_third(encoder, samples, *rest):
        seen.append(len(samples))
        if len(seen) == 3:
            raise KeyboardInterrupt
        return encode(encoder, samples, *rest)

    monkeypatch.setattr(stage, "encode", until_third)
    monkeypatch.setattr(stage, "_PART", 3)
    with pytest.raises(KeyboardInterrupt):
        encoded(world, option())
    before = list(seen)
    whole, _ = encoded(world, option())
    assert (before, seen[3:]) == ([3, 3, 1], [1, 3, 1, 2, 1])
    seen.clear()
    with pytest.raises(KeyboardInterrupt):
        encoded(world, option())
    with torch.no_grad():
        network[1].bias += 1
    moved, _ = encoded(world, option())
    assert seen[3:] == [3, 3, 1, 3, 1, 2, 1]
    torch.testing.assert_close(moved["train"], whole["train"] + 1)


@pytest.mark.parametrize(
    ("library", "name", "width"),
    [("torchvision", "mobilenet_v3_small", 1024), ("timm", "resnet10t", 512)],
)
def test_a_file_of_weights_gives_all_layers_but_the_last(world, library, name, width):
    if find_spec(library) is None:
        pytest.skip(f"needs {library}, of the extra vision")
    if library == "timm":
        from timm import create_model as new
    else:
        from torchvision.models import get_model as new
    state = new(name).state_dict()
    torch.save(state, world / "own.pth")
    found, info = encoded(world, option(library, name, image_size=32))
    assert info["shape"] == [width]
    assert found["train"].std() > 0
    torch.save(dict([*state.items()][:1]), world / "own.pth")
    with pytest.raises(FedstageError, match=r"own.pth: .*: missing: must be \["):
        encoded(world, option(library, name, image_size=32))


def test_texts_are_the_mean_of_their_tokens_without_padding(world):
    if find_spec("transformers") is None:
        pytest.skip("needs transformers, of the extra text")
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1}
    bert = BertModel(BertConfig(vocab_size=9, intermediate_size=4, **sizes)).eval()
    bert.save_pretrained(world / "bert")
    of = {"ag_news": {"vocabulary": "vocab.txt"}}
    chosen = option("transformers", "any", "bert", of=of).data
    tokens = torch.tensor([[2, 5, 3, 0, 0], [2, 4, 6, 7, 3]])
    net = encoders.frozen_encoder(chosen.encoder, world)
    found = encoders.encode(net, tokens.int(), chosen, CPU)
    expected = bert(input_ids=tokens[:1, :3]).last_hidden_state.mean(1)
    torch.testing.assert_close(found[:1], expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(FedstageError, match=r"vocabulary: token 9: the encoder's has 9"):
        encoders.encode(net, tokens.int() + 2, chosen, CPU)


def recipe(**changes):
    taught = {"ensemble": "clients", "global": "basic", "public": {"cifar100": {}}}
    return validate(Recipe, distilled(data=features(), model="mlp", **taught) | changes, "here")


def test_public_data_go_through_the_clients_encoder():
    other = recipe()
    expected = other.data.model_copy(update={"of": other.public})
    assert public_id(other) == data_file(expected, "train").split("/")[2]
    assert public_id(other).startswith("cifar100_features-")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (
            {"client": {**CLIENT, "augmentation": "flip"}},
            "augmentation = flip: needs samples that are images",
        ),
        ({"model": "resnet8"}, "takes images, and the samples of data = features are features"),
    ],
)
def test_what_needs_images_is_refused(changes, fault):
    with pytest.raises(FedstageError, match=fault):
        recipe(**changes)
