"""The gate of the mixture of experts."""

import pytest
import torch
from torch import nn

from fedstage.algorithm.one_shot.aggregators import Knowledge, moe
from fedstage.errors import FedstageError
from fedstage.randomness import torch_generator
from fedstage.settings.aggregators import Moe

SMALL = {"channels": [2, 3], "kernel": 3, "padding": 1, "hidden": [5, 4]}


def settings(**changes):
    return Moe.model_validate({"name": "moe", **changes})


def drawn(chosen, members=20, shape=(3, 32, 32)):
    counts = torch.ones(members, 10, dtype=torch.int64)
    return moe.parameters(chosen, Knowledge(counts, shape), torch_generator(0, "gate"))


def images(shape, samples=6):
    return torch.randn(samples, *shape, generator=torch.Generator().manual_seed(1))


def test_the_gate_of_the_released_code_has_62856_numbers():
    assert sum(value.numel() for value in drawn(settings()).values()) == 62_856


def lenet(parameters, channels, hidden, kernel, padding, members, features):
    """The same gate of PyTorch's modules."""
    network = nn.Sequential(
        nn.Conv2d(1, channels[0], kernel, padding=padding), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(channels[0], channels[1], kernel, padding=padding), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(features, hidden[0]), nn.ReLU(),
        nn.Linear(hidden[0], hidden[1]), nn.ReLU(), nn.Linear(hidden[1], members), nn.Softmax(1),
    )  # fmt: skip
    network.load_state_dict(dict(zip(network.state_dict(), parameters.values(), strict=True)))
    return network


@pytest.mark.parametrize("side", [8, 9, 12])
def test_the_gate_is_the_network_that_it_is_said_to_be(side):
    chosen, shape = settings(**SMALL), (1, side, side)
    parameters = drawn(chosen, members=7, shape=shape)
    features = 3 * (side // 2 // 2) ** 2
    network = lenet(parameters, (2, 3), (5, 4), 3, 1, 7, features)
    x = images(shape)
    assert torch.allclose(moe.gate(chosen, parameters, x), network(x), atol=1e-6)


def test_weights_are_probabilities():
    shape = (1, 8, 8)
    parameters = drawn(settings(**SMALL), members=4, shape=shape)
    parameters["head.bias"] = torch.full((4,), 2.0)
    soft = moe.gate(settings(**SMALL), parameters, images(shape))
    assert torch.allclose(soft.sum(1), torch.ones(6))


def test_experts_are_weighed_by_the_gate_of_each_image():
    chosen, shape = settings(**SMALL), (1, 8, 8)
    parameters = drawn(chosen, members=4, shape=shape)
    x = images(shape)
    logits = torch.randn(4, 6, 10, generator=torch.Generator().manual_seed(2))
    weights = moe.gate(chosen, parameters, x)
    expected = torch.stack([weights[n] @ logits[:, n] for n in range(6)])
    assert torch.allclose(moe.combine(chosen, parameters, logits, x), expected, atol=1e-5)


def test_images_that_are_too_small_are_refused():
    with pytest.raises(FedstageError, match=r"aggregator\.kernel = 5, padding = 0.*8x8 pixels"):
        drawn(settings(), shape=(1, 8, 8))
