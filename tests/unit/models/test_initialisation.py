import json
from math import sqrt

import pytest
import torch
from tests.shared.plugins import loaded
from tests.shared.stages import initial_model
from torch import nn

from fedstage.errors import FedstageError
from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.models import CnnSmall, LogisticRegression, ResNet, WideResNet
from fedstage.storage.files import save_json
from fedstage.storage.tensors import load_tensors

CIFAR = (3, 32, 32)
NORMS = ("batch", "group", "none")
DEEP = [
    LogisticRegression(name="logistic_regression"),
    *(CnnSmall(name="cnn_small", norm=norm) for norm in NORMS),
    *(ResNet(name="resnet56", norm=norm, shortcut=cut) for norm in NORMS for cut in ("A", "B")),
    *(WideResNet(name="wrn16_2", norm=norm) for norm in NORMS),
]


def initialised(settings, shape=(1, 8, 8), seed=0):
    model = build(settings, shape, 10)
    initialise(model, torch_generator(seed, "weights"))
    return model


def same(first, second):
    return first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) for name in first
    )


@pytest.mark.parametrize("settings", DEEP, ids=str)
def test_the_generator_determines_every_value(settings):
    state = initialised(settings).state_dict()
    assert all(value.isfinite().all() for value in state.values())
    assert same(state, initialised(settings).state_dict())
    other = initialised(settings, seed=1).state_dict()
    assert not any(torch.equal(state[name], other[name]) for name in state if state[name].ndim > 1)


def test_embeddings_and_layer_norms_are_those_of_bert():
    model = nn.Sequential(nn.Embedding(400, 50), nn.LayerNorm(50))
    nn.init.constant_(model[1].weight, 3.0)
    initialise(model, torch_generator(0, "weights"))
    assert model[0].weight.std().item() == pytest.approx(0.02, rel=0.03)
    assert model[1].weight.eq(1).all()
    assert model[1].bias.eq(0).all()


@pytest.mark.parametrize("name", ["conv1", "conv2"])
def test_convolutions_are_he_normal_by_fan_in(name):
    convolution = getattr(initialised(CnnSmall(name="cnn_small", width=128), CIFAR), name)
    weight = convolution.weight.detach()
    expected = sqrt(2 / (weight.shape[1] * 9))
    assert weight.std().item() == pytest.approx(expected, rel=0.05)
    assert abs(weight.mean().item()) < 0.1 * expected
    # A normal variable is within one standard deviation with probability 0.683; a uniform, 0.577.
    within = (weight.abs() < expected).float().mean().item()
    assert within == pytest.approx(0.683, abs=0.03)
    assert convolution.bias.eq(0).all()


@pytest.mark.parametrize("part", ["weight", "bias"])
def test_linear_layers_are_uniform_by_fan_in(part):
    model = initialised(CnnSmall(name="cnn_small", hidden=500))
    values = getattr(model.linear1, part).detach()
    bound = 1 / sqrt(model.linear1.in_features)
    assert 0.98 * bound < values.abs().max().item() <= bound
    assert values.std().item() == pytest.approx(bound / sqrt(3), rel=0.05)


def test_residual_branches_without_norms_are_damped():
    block = initialised(ResNet(name="resnet20", norm="none")).stage3[1]
    undamped = sqrt(2 / (64 * 9))
    assert block.conv1.weight.std().item() == pytest.approx(undamped, rel=0.05)
    assert block.conv2.weight.std().item() == pytest.approx(undamped / sqrt(9), rel=0.05)


class Scale(nn.Module):
    """A layer of a kind of its own."""

    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.empty(3))

    def initialise(self, generator):
        self.factor.uniform_(2.0, 3.0, generator=generator)


def test_layers_of_other_kinds_say_how_they_start():
    first, again = Scale(), Scale()
    for layer in (first, again):
        initialise(layer, torch_generator(0, "weights"))
    assert torch.equal(first.factor, again.factor)
    assert ((first.factor >= 2) & (first.factor < 3)).all()


# --- what is found out about a plugin's model before it is trained --------------------------------


MODEL = """
from math import prod
from typing import ClassVar, Literal

import torch
from torch import nn

from fedstage.settings.models import KIND


class TinyNet(KIND):
    samples: ClassVar[tuple[str, ...]] = ("SAMPLES",)
    name: Literal["tinynet"]


class Drawing(nn.Module):
    def forward(self, x):
        torch.rand(1)
        return x


class Pair(nn.Module):
    def forward(self, x):
        return x, x


def network(settings, shape, classes):
    return nn.Sequential(LAYERS)
"""
IMAGES = {"shape": [1, 8, 8], "classes": 10}


@pytest.fixture
def draw(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def draw(layers, info, kind="Headed", samples="images", **settings):
        code = MODEL.replace("LAYERS", layers).replace("KIND", kind).replace("SAMPLES", samples)
        save_json(tmp_path / "info.json", {"mean": [], "std": [], **info})
        chosen = {"model": {"name": "tinynet", **settings}, "seed": 0}
        output = tmp_path / "model.safetensors"
        output.unlink(missing_ok=True)
        with loaded("mine/tinynet.py", code):
            initial_model(
                settings=json.dumps(chosen), group=0, info=tmp_path / "info.json", output=output
            )
        return load_tensors(output)[0]

    return draw


@pytest.mark.parametrize(
    ("layers", "fault"),
    [
        ("nn.Flatten(), nn.Linear(64, classes + 1)", "output [n, 11], must be [n, 10]"),
        ("nn.Flatten(), nn.Linear(64, classes), nn.Flatten(0)", "output [20], must be [n, 10]"),
        ("nn.Conv2d(1, classes, 3)", "output [n, 10, 6, 6], must be [n, 10]"),
        ("nn.Flatten(), nn.Linear(64, classes), Pair()", "output tuple, must be a tensor"),
        (
            "nn.Flatten(), nn.Linear(65, classes)",
            "with samples of shape [1, 8, 8]: RuntimeError: mat1 and mat2 shapes cannot be "
            "multiplied (2x64 and 65x10)",
        ),
    ],
)
def test_a_model_that_does_not_fit_the_data_is_refused_by_its_name_and_file(draw, layers, fault):
    with pytest.raises(FedstageError) as caught:
        draw(layers, IMAGES)
    assert str(caught.value) == f"mine/tinynet.py: tinynet: {fault}"


@pytest.mark.parametrize(
    ("samples", "shape", "layers"),
    [
        ("features", [5], "nn.Linear(5, classes)"),
        ("tokens", [7], "nn.Embedding(9, 4), nn.Flatten(), nn.Linear(28, classes)"),
        ("bags", [5], "nn.Flatten(), nn.Linear(6, classes)"),
        ("feature maps", [1, 8, 8], "nn.Flatten(), nn.Linear(16 * 64, classes)"),
    ],
)
def test_samples_of_each_kind_are_tried(draw, samples, shape, layers):
    kind = "Upper" if samples == "feature maps" else "Architecture"
    info = {"shape": shape, "classes": 3}
    with pytest.raises(FedstageError, match=r"tinynet: output \[n, 4\], must be \[n, 3\]"):
        draw(layers.replace("classes", "classes + 1"), info, kind, samples)
    assert draw(layers, info, kind, samples)
