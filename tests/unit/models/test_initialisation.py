import json
import random
from math import sqrt

import numpy as np
import pytest
import torch
from tests.shared.plugins import loaded
from tests.shared.stages import initial_model
from torch import nn

from fedstage.errors import FedstageError
from fedstage.models import trial
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


# --- a plugin's model: what its construction gives ------------------------------------------------

MODEL = """
import random
from math import prod
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import nn

from fedstage.settings.models import KIND


class TinyNet(KIND):
    samples: ClassVar[tuple[str, ...]] = ("SAMPLES",)
    name: Literal["tinynet"]


class Own(nn.Module):
    # Draws in every way, and sets some of it.
    def __init__(self, classes):
        super().__init__()
        self.bare = nn.Parameter(torch.rand(classes))
        self.set = nn.Linear(classes, classes)
        nn.init.zeros_(self.set.weight)
        self.register_buffer("drawn", torch.tensor([random.random(), np.random.rand()]))

    def forward(self, x):
        return self.set(x) + self.bare


class Container(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def initialise(self, generator):
        nn.init.constant_(self.inner.weight, 0.5)
        self.inner.bias.normal_(generator=generator)

    def forward(self, x):
        return self.inner(x)


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

    def draw(layers, info=IMAGES, kind="Headed", samples="images", group=0, **settings):
        code = MODEL.replace("LAYERS", layers).replace("KIND", kind).replace("SAMPLES", samples)
        save_json(tmp_path / "info.json", {"mean": [], "std": [], **info})
        chosen = {"model": {"name": "tinynet", **settings}, "seed": 0}
        output = tmp_path / "model.safetensors"
        output.unlink(missing_ok=True)
        with loaded("mine/tinynet.py", code):
            initial_model(
                settings=json.dumps(chosen), group=group, info=tmp_path / "info.json",
                output=output,
            )  # fmt: skip
        return load_tensors(output)[0]

    return draw


ORDINARY = "nn.Flatten(), nn.Linear(64, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, classes)"


@pytest.mark.parametrize("layers", [ORDINARY, f"{ORDINARY}, Own(classes)"])
def test_construction_under_the_key_of_seed_and_group_gives_all_values(draw, layers):
    first = draw(layers)
    _ = torch.rand(3), random.random(), np.random.rand()  # noqa: NPY002
    assert same(draw(layers), first)
    other = draw(layers, group=1)
    differing = {name for name in first if not torch.equal(first[name], other[name])}
    drawn = {"1.weight", "1.bias", "4.weight", "4.bias"}
    assert differing == drawn | ({"5.bare", "5.set.bias", "5.drawn"} & first.keys())


def test_construction_leaves_all_generators_as_they_were(draw):
    def states():
        return str(random.getstate()), str(np.random.get_state())  # noqa: NPY002

    before, ours = torch.get_rng_state(), states()
    draw(f"{ORDINARY}, Own(classes)")
    assert torch.equal(torch.get_rng_state(), before)
    assert states() == ours


def test_weights_that_the_network_sets_itself_stay(draw):
    assert draw(f"{ORDINARY}, Own(classes)")["5.set.weight"].eq(0).all()


def test_of_a_layer_that_initialises_itself_no_child_is_drawn_again(draw):
    weights = draw("nn.Flatten(), nn.Linear(64, 4), Container(), nn.Linear(4, classes)")
    assert weights["2.inner.weight"].eq(0.5).all()


def test_a_model_is_the_same_in_every_job(tmp_path, monkeypatch):
    """Also what its file does not hold: tensors that are no buffers, and others left out."""
    monkeypatch.chdir(tmp_path)
    code = (
        MODEL.replace("KIND", "Headed")
        .replace("SAMPLES", "images")
        .replace(
            "LAYERS",
            """
        nn.Flatten(), Fixed()""",
        )
        + """
class Fixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.plain = torch.rand(64, 10)
        self.register_buffer("left_out", torch.rand(10), persistent=False)
        self.scale = nn.Parameter(torch.rand(10))

    def forward(self, x):
        return x @ self.plain * self.scale + self.left_out
"""
    )
    with loaded("mine/tinynet.py", code) as kinds:
        first, second = (build(kinds["tinynet"](name="tinynet"), (1, 8, 8), 10) for _ in range(2))
    images = torch.rand(2, 1, 8, 8)
    assert torch.equal(first(images), second(images))


@pytest.mark.parametrize(
    ("layers", "fault"),
    [
        (
            "nn.Flatten(), nn.LazyLinear(classes)",
            "1: LazyLinear: must be given its sizes, which follow from shape and classes",
        ),
        (
            ORDINARY,
            "with 1 sample of shape [1, 8, 8] in training: ValueError: Expected more than "
            "1 value per channel when training, got input size torch.Size([1, 4])",
        ),
        ("nn.Flatten(), nn.Linear(64, classes + 1)", "output [n, 11], must be [n, 10]"),
        ("nn.Flatten(), nn.Linear(64, classes), nn.Flatten(0)", "output [20], must be [n, 10]"),
        ("nn.Conv2d(1, classes, 3)", "output [n, 10, 6, 6], must be [n, 10]"),
        ("nn.Flatten(), nn.Linear(64, classes), Pair()", "output tuple, must be a tensor"),
        (
            "nn.Flatten(), nn.Linear(65, classes)",
            "with 2 samples of shape [1, 8, 8]: RuntimeError: mat1 and mat2 shapes cannot be "
            "multiplied (2x64 and 65x10)",
        ),
    ],
)
def test_a_model_that_does_not_fit_the_data_is_told_by_its_name_and_file(
    layers, fault, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FEDSTAGE_PLUGINS", "mine/tinynet.py")
    code = MODEL.replace("LAYERS", layers).replace("KIND", "Headed").replace("SAMPLES", "images")
    settings = {"model": {"name": "tinynet"}, "seed": 0}
    with loaded("mine/tinynet.py", code):
        told = trial.main(json.dumps({"settings": settings, "least": 1, **IMAGES}))
    # Later versions of torch name the operation.
    assert told.replace("addmm: ", "") == f"mine/tinynet.py: tinynet: {fault}"


def test_a_model_is_tried_where_its_weights_are_drawn(draw):
    with pytest.raises(FedstageError, match=r"^mine/tinynet.py: tinynet: output \[n, 11\], must"):
        draw("nn.Flatten(), nn.Linear(64, classes + 1)")


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
