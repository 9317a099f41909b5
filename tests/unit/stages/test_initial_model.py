import json

import pytest
import torch
from tests.shared.stages import initial_model

from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
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


def test_same_seed_and_group_give_the_same_bytes_whatever_was_drawn_before(info):
    first = draw(info, CNN, name="first").read_bytes()
    torch.rand(100)
    draw(info, CNN, group=1, name="between")
    assert draw(info, CNN, name="second").read_bytes() == first
