import pytest
import torch
from torch import nn

from fedstage.randomness import torch_generator
from fedstage.settings.optimisation import Cosine, Cyclical, Optimiser, Step
from fedstage.training.optimisers import descent, factor, optimiser_step, step_sizes

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


# --- schedules ------------------------------------------------------------------------------------


def factors(schedule, steps):
    return [factor(schedule, step, steps) for step in range(steps)]


def test_step_multiplies_after_each_milestone():
    schedule = Step(name="step", milestones=(0.5, 0.8), factor=0.1)
    assert factors(schedule, 10) == pytest.approx([1] * 5 + [0.1] * 3 + [0.01] * 2)


@pytest.mark.parametrize(("percent", "steps"), [(28, 25), (55, 100), (7, 100), (29, 100), (60, 5)])
def test_milestone_that_falls_on_a_step_starts_there(percent, steps):
    schedule = Step(name="step", milestones=(percent / 100,), factor=0.5)
    assert factors(schedule, steps).count(1.0) == percent * steps // 100


@pytest.mark.parametrize(
    ("final", "expected"),
    [
        (0.0, [1.0, 0.8535533906, 0.5, 0.1464466094]),
        (0.2, [1.0, 0.8828427125, 0.6, 0.3171572875]),
        (1.0, [1.0, 1.0, 1.0, 1.0]),
    ],
)
def test_cosine_against_hand_values(final, expected):
    assert factors(Cosine(name="cosine", final=final), 4) == pytest.approx(expected, abs=1e-9)


def test_cosine_never_reaches_its_final_value_and_a_single_step_is_whole():
    schedule = Cosine(name="cosine")
    assert factors(schedule, 1) == [1.0]
    falling = factors(schedule, 100)
    assert falling == sorted(falling, reverse=True)
    assert 0 < falling[-1] < 0.001


def test_cyclical_against_hand_values():
    schedule = Cyclical(name="cyclical", cycle=4, final=0.2)
    assert factors(schedule, 10) == pytest.approx([0.8, 0.6, 0.4, 0.2] * 2 + [0.8, 0.6])


# --- descent --------------------------------------------------------------------------------------


RATES = [0.1, 0.02, 0.3]


def drawn(*shape):
    return torch.randn(shape, generator=torch_generator(0, "descent", len(shape)))


def parts():
    """Return two parameters that move, and a model that must not."""
    first, second, other = nn.Parameter(drawn(2, 3)), nn.Parameter(drawn(3)), nn.Linear(3, 3)
    with torch.no_grad():
        other.weight.copy_(torch.eye(3) * 2)
        other.bias.zero_()
    return first, second, other


def loss_of(first, second, other):
    return (other(first) * second).square().sum() * 50


def moved_by_adam(rates=RATES, *, betas=(0.9, 0.999), clip=None, clipped=slice(None)):
    """The same steps by `torch.optim`."""
    first, second, other = parts()
    optimiser = torch.optim.Adam([first, second], betas=betas)
    for rate in rates:
        optimiser.zero_grad()
        loss_of(first, second, other).backward()
        if clip is not None:
            nn.utils.clip_grad_norm_([first, second][clipped], clip)
        optimiser.param_groups[0]["lr"] = rate
        optimiser.step()
    return [first.detach(), second.detach()]


def descended(*, beta1=0.9, clip=None, clipped=slice(None)):
    first, second, other = parts()
    adam = Optimiser(optimiser="adam", learning_rate=0.1, batch_size=2, clip_norm=clip)
    own = [first, second]
    steps = descent(own, adam, RATES, beta1=beta1, clipped=own[clipped])
    for step in range(len(RATES)):
        steps(loss_of(first, second, other), step)
    assert [one.grad for one in (first, second, *other.parameters())] == [None] * 4
    return [first.detach(), second.detach()]


@pytest.mark.parametrize("beta1", [0.9, 0.5])
@pytest.mark.parametrize(
    ("clip", "clipped"), [(None, slice(None)), (0.1, slice(None)), (0.1, slice(1))]
)
def test_its_steps_are_those_of_torch(beta1, clip, clipped):
    ours = descended(beta1=beta1, clip=clip, clipped=clipped)
    theirs = moved_by_adam(betas=(beta1, 0.999), clip=clip, clipped=clipped)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
