from math import sqrt

import pytest
import torch
from torch import nn

from fedstage.models.build import build
from fedstage.models.initialisation import initialise
from fedstage.randomness import torch_generator
from fedstage.settings.models import CnnSmall, LogisticRegression, ResNet, WideResNet

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
