import pytest
import torch
from torch import nn

from fedstage.randomness import torch_generator
from fedstage.settings.optimisation import Optimiser
from fedstage.training.optimisers import optimiser_step, step_sizes

STEPS = 20
SHAPES = [(3, 2, 3, 3), (3,), (4, 5), ()]


def settings(**changes):
    return Optimiser.model_validate({"learning_rate": 0.1, "batch_size": 4} | changes)


def parameters():
    generator = torch_generator(0, "parameters")
    return [nn.Parameter(torch.randn(shape, generator=generator)) for shape in SHAPES]


def rates():
    """A rate that changes from step to step, as a schedule makes it."""
    return [0.1 / (1 + step % 7) for step in range(STEPS)]


def gradients():
    generator = torch_generator(0, "gradients")
    return [[torch.randn(shape, generator=generator) for shape in SHAPES] for _ in range(STEPS)]


def moved(chosen):
    """Take the steps with the function under test, gradients given."""
    weights = parameters()
    step = optimiser_step(weights, chosen)
    for sizes, drawn in zip(step_sizes(chosen, rates(), weights[0]), gradients(), strict=True):
        for weight, gradient in zip(weights, drawn, strict=True):
            weight.grad = gradient.clone()
        step(sizes)
    return [weight.detach() for weight in weights]


def moved_by_torch(build):
    weights = parameters()
    optimiser = build(weights)
    for rate, drawn in zip(rates(), gradients(), strict=True):
        for weight, gradient in zip(weights, drawn, strict=True):
            weight.grad = gradient.clone()
        optimiser.param_groups[0]["lr"] = rate
        optimiser.step()
    return [weight.detach() for weight in weights]


def relative_difference(ours, theirs):
    return max(
        float(((a - b).abs() / b.abs().clamp(min=1e-2)).max())
        for a, b in zip(ours, theirs, strict=True)
    )


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"weight_decay": 0.01},
        {"momentum": 0.9},
        {"momentum": 0.9, "weight_decay": 0.01},
        {"momentum": 0.9, "nesterov": True},
        {"momentum": 0.5, "nesterov": True, "weight_decay": 0.1},
    ],
    ids=lambda change: " ".join(change) or "plain",
)
def test_sgd_is_that_of_torch_bit_for_bit(change):
    expected = moved_by_torch(lambda weights: torch.optim.SGD(weights, lr=0.1, **change))
    for ours, theirs in zip(moved(settings(**change)), expected, strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("decay", [0.0, 0.05])
def test_adam_is_that_of_torch(decay):
    expected = moved_by_torch(lambda weights: torch.optim.Adam(weights, lr=0.1, weight_decay=decay))
    ours = moved(settings(optimiser="adam", weight_decay=decay))
    assert relative_difference(ours, expected) < 1e-6
