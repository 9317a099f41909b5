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


def slow_sgd(momentum, nesterov, decay):
    """The textbook's loop in float64, number by number."""
    result = []
    for place, start in enumerate(parameters()):
        weight, velocity = start.detach().double(), None
        for rate, drawn in zip(rates(), gradients(), strict=True):
            gradient = drawn[place].double() + decay * weight
            velocity = gradient if velocity is None else momentum * velocity + gradient
            weight = weight - rate * (gradient + momentum * velocity if nesterov else velocity)
        result.append(weight)
    return result


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum_and_decay_against_a_slow_loop(nesterov):
    chosen = settings(momentum=0.9, nesterov=nesterov, weight_decay=0.01)
    assert relative_difference(moved(chosen), slow_sgd(0.9, nesterov, 0.01)) < 1e-5


def slow_adam(decay):
    result = []
    for place, start in enumerate(parameters()):
        weight = start.detach().double()
        first, second = torch.zeros_like(weight), torch.zeros_like(weight)
        for count, (rate, drawn) in enumerate(zip(rates(), gradients(), strict=True), start=1):
            gradient = drawn[place].double() + decay * weight
            first = 0.9 * first + 0.1 * gradient
            second = 0.999 * second + 0.001 * gradient**2
            corrected = first / (1 - 0.9**count), second / (1 - 0.999**count)
            weight = weight - rate * corrected[0] / (corrected[1].sqrt() + 1e-8)
        result.append(weight)
    return result


@pytest.mark.parametrize("decay", [0.0, 0.05])
def test_adam_against_a_slow_loop(decay):
    chosen = settings(optimiser="adam", weight_decay=decay)
    assert relative_difference(moved(chosen), slow_adam(decay)) < 1e-5


def test_plain_step_by_hand():
    weight = nn.Parameter(torch.tensor([1.0, 2.0]))
    weight.grad = torch.tensor([0.5, -1.0])
    optimiser_step([weight], settings())(step_sizes(settings(), [0.5], weight)[0])
    assert weight.tolist() == [0.75, 2.5]


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize(
    "change",
    [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}, {"optimiser": "adam"}],
    ids=str,
)
def test_gradients_are_read_only(change, decay):
    weight = nn.Parameter(torch.ones(3))
    weight.grad = torch.tensor([1.0, 2.0, 3.0])
    chosen = settings(weight_decay=decay, **change)
    step = optimiser_step([weight], chosen)
    for sizes in step_sizes(chosen, [0.1, 0.1], weight):
        step(sizes)
    assert weight.grad.tolist() == [1, 2, 3]


@pytest.mark.parametrize("change", [{"momentum": 0.9}, {"optimiser": "adam"}], ids=str)
def test_each_step_function_has_state_of_its_own(change):
    first = moved(settings(**change))
    assert all(torch.equal(a, b) for a, b in zip(first, moved(settings(**change)), strict=True))


def test_parameter_without_a_gradient_is_a_bug_that_shows():
    weights = parameters()
    weights[0].grad = torch.zeros(SHAPES[0])
    with pytest.raises(AssertionError, match="takes part in the loss"):
        optimiser_step(weights, settings())(torch.tensor([0.1, 1.0]))
