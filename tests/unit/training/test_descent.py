import pytest
import torch
from torch import nn

from fedstage.randomness import torch_generator
from fedstage.settings.optimisation import Optimiser
from fedstage.training.descent import descent

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


def moved(rates=RATES, *, betas=(0.9, 0.999), clip=None, clipped=slice(None)):
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
    theirs = moved(betas=(beta1, 0.999), clip=clip, clipped=clipped)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
