"""What a client minimises where clients exchange features."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fedstage.algorithm.local_trainers import Task, local_trainer
from fedstage.algorithm.local_trainers.gkt import put_together, transfer
from fedstage.settings.local_training import Gkt
from fedstage.training.passes import PLAIN

CLASSES = 5


def logits(seed):
    return torch.randn(7, CLASSES, generator=torch.Generator().manual_seed(seed)) * 3


def gkt(**changes):
    return Gkt(name="gkt", **changes)


def minimised(settings, targets):
    """Return the loss of a linear model of seven samples, and its gradient."""
    model = nn.Linear(4, CLASSES)
    with torch.no_grad():
        model.weight.copy_(torch.arange(20.0).reshape(CLASSES, 4).sin())
        model.bias.zero_()
    samples = torch.arange(28.0).reshape(7, 4).cos()
    task = Task(model, cross_entropy, PLAIN, {}, 0, LABELS, CLASSES, torch.Generator())
    loss = local_trainer(settings).objective(task)(model, samples, targets)
    return loss.detach(), torch.autograd.grad(loss, model.weight)[0], model(samples).detach()


LABELS = torch.tensor([0, 4, 2, 2, 1, 3, 0])


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_transfer_is_the_divergence_of_the_paper(temperature):
    q, p = ((logits(seed).double() / temperature).softmax(1) for seed in (0, 1))
    expected = temperature**2 * (q * (q.log() - p.log())).sum(1).mean()
    found = transfer(logits(0).double(), logits(1).double(), gkt(temperature=temperature))
    torch.testing.assert_close(found, expected)
    assert expected > 0.1


def test_without_alpha_a_client_minimises_the_cross_entropy():
    told = minimised(gkt(alpha=0.0), put_together(LABELS, logits(0)))
    alone = minimised(gkt(), LABELS)
    assert all(torch.equal(one, other) for one, other in zip(told, alone, strict=True))
    assert torch.equal(alone[0], cross_entropy(alone[2], LABELS))


def test_alpha_weighs_what_the_server_says():
    said = logits(0)
    for alpha in (0.5, 2.0):
        loss, _, own = minimised(gkt(alpha=alpha), put_together(LABELS, said))
        expected = cross_entropy(own, LABELS) + alpha * transfer(said, own, gkt())
        torch.testing.assert_close(loss, expected)
