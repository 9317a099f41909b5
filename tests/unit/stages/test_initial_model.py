import json

import pytest
import torch
from tests.shared.stages import initial_model

from fedstage.errors import FedstageError
from fedstage.models.build import build
from fedstage.models.initialisation import initialise
from fedstage.randomness import torch_generator
from fedstage.settings.models import ResNet
from fedstage.storage.files import save_json
from fedstage.storage.tensors import load_tensors

CNN = {"model": {"name": "cnn_small", "width": 4, "hidden": 8}, "seed": 0}
RESNET = {"model": {"name": "resnet8"}, "seed": 5}


@pytest.fixture
def info(tmp_path):
    path = tmp_path / "info.json"
    save_json(path, {"shape": [1, 8, 8], "classes": 10, "mean": [0.3], "std": [0.4]})
    return path


def draw(info, settings, group=0, name="model.safetensors"):
    output = info.parent / name
    initial_model(settings=json.dumps(settings), group=group, info=info, output=output)
    return output


def test_file_holds_the_state_of_a_model_drawn_with_the_key_of_its_group(info):
    weights, metadata = load_tensors(draw(info, RESNET, group=2))
    model = build(ResNet(name="resnet8"), (1, 8, 8), 10)
    initialise(model, torch_generator(5, "initial_model", 2, "weights"))
    expected = model.state_dict()
    assert weights.keys() == expected.keys()
    assert all(torch.equal(weights[name], expected[name]) for name in expected)
    assert metadata == {}


def test_file_fits_a_newly_built_model(info):
    weights, _ = load_tensors(draw(info, RESNET))
    model = build(ResNet(name="resnet8"), (1, 8, 8), 10)
    model.load_state_dict(weights)
    assert model(torch.ones(2, 1, 8, 8)).isfinite().all()


def test_same_seed_and_group_give_the_same_bytes_whatever_was_drawn_before(info):
    first = draw(info, CNN, name="first").read_bytes()
    torch.rand(100)
    draw(info, CNN, group=1, name="between")
    assert draw(info, CNN, name="second").read_bytes() == first


@pytest.mark.parametrize(("change", "group"), [({}, 1), ({"seed": 1}, 0)], ids=["group", "seed"])
def test_another_group_or_seed_starts_from_other_weights(info, change, group):
    first, _ = load_tensors(draw(info, CNN, name="first"))
    second, _ = load_tensors(draw(info, CNN | change, group=group, name="second"))
    for name in ("conv1.weight", "conv2.weight", "linear1.weight", "linear2.bias"):
        assert not torch.equal(first[name], second[name])


def test_short_form_of_a_model_is_understood(info):
    weights, _ = load_tensors(draw(info, {"model": "logistic_regression", "seed": 0}))
    assert {name: tuple(value.shape) for name, value in weights.items()} == {
        "linear.weight": (10, 64),
        "linear.bias": (10,),
    }


def test_models_of_features_are_drawn_as_those_of_images(tmp_path):
    path = tmp_path / "info.json"
    save_json(path, {"shape": [13], "classes": 2, "mean": [], "std": []})
    settings = {"model": {"logistic_regression": {"outputs": 1}}, "seed": 0}
    weights, _ = load_tensors(draw(path, settings))
    assert weights["linear.weight"].shape == (1, 13)
    assert weights["linear.weight"].abs().max() <= 13**-0.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "vgg", "seed": 0}, "--settings: model = 'vgg': unknown; use 'cnn_small'"),
        ({"model": "cnn_small"}, "--settings: seed: missing"),
        (CNN | {"rounds": 3}, "--settings: rounds = 3: unknown key"),
    ],
    ids=["model", "seed", "key"],
)
def test_faulty_settings_are_named(info, settings, message):
    with pytest.raises(FedstageError) as caught:
        draw(info, settings)
    assert str(caught.value).startswith(message)
    assert not (info.parent / "model.safetensors").exists()


def test_settings_that_are_not_json_are_named(info, tmp_path):
    with pytest.raises(FedstageError, match=r"^--settings = '\{': must be a JSON object"):
        initial_model(settings="{", group=0, info=info, output=tmp_path / "model.safetensors")


def test_images_too_small_for_the_model_are_named(tmp_path):
    path = tmp_path / "info.json"
    save_json(path, {"shape": [1, 4, 4], "classes": 2})
    with pytest.raises(FedstageError, match="model = resnet8: images of 4x4 pixels"):
        draw(path, RESNET)
