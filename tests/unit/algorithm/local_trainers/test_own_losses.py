"""Local trainers with a loss of their own: FedNTD and FedLC, by hand."""

import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fedstage.algorithm.local_trainers import Task, fedntd, local_trainer
from fedstage.errors import FedstageError
from fedstage.settings.local_training import FedLc, FedNtd
from fedstage.training.passes import PLAIN

CLASSES = 4
LABELS = torch.tensor([0, 3, 0, 1, 1, 0])  # of no sample class 2


def linear(seed):
    model = nn.Linear(5, CLASSES).double()
    with torch.no_grad():
        for number, weights in enumerate(model.parameters(), seed):
            weights.copy_(
                torch.arange(weights.numel()).reshape(weights.shape).mul(number + 1).sin()
            )
    return model


def task(model):
    return Task(model, cross_entropy, PLAIN, {}, 0, LABELS, CLASSES, torch.Generator())


SAMPLES = torch.arange(30, dtype=torch.float64).reshape(6, 5).cos()


def not_true_divergence(known, logits, tau):
    """The mean KL over the classes beside the label, sample by sample."""
    total = 0.0
    for q, p, label in zip(known.tolist(), logits.tolist(), LABELS.tolist(), strict=True):
        q, p = ([math.exp(z / tau) for c, z in enumerate(one) if c != label] for one in (q, p))
        q, p = ([value / sum(one) for value in one] for one in (q, p))
        total += sum(a * math.log(a / b) for a, b in zip(q, p, strict=True))
    return total / len(LABELS)


@pytest.mark.parametrize(("beta", "tau"), [(1.0, 1.0), (0.3, 2.5)])
def test_fedntd_distils_what_the_global_model_knows_of_other_classes(beta, tau):
    start, model = linear(0), linear(4)
    settings = FedNtd(name="fedntd", beta=beta, temperature=tau)
    loss = local_trainer(settings).objective(task(start))(model, SAMPLES, LABELS)
    plain = cross_entropy(model(SAMPLES), LABELS)
    expected = not_true_divergence(start(SAMPLES), model(SAMPLES), tau)
    assert expected > 0.05
    assert loss.item() == pytest.approx(plain.item() + beta * tau**2 * expected)


def test_fedntd_starts_at_the_cross_entropy_and_moves_neither_the_global_model_nor_true_logits():
    start = linear(0)
    loss = local_trainer(FedNtd(name="fedntd")).objective(task(start))(start, SAMPLES, LABELS)
    torch.testing.assert_close(loss, cross_entropy(start(SAMPLES), LABELS))
    # The label's own logit has no part in the distillation.
    logits = start(SAMPLES).detach().requires_grad_()
    pair = [fedntd.not_true(one, LABELS) for one in (linear(4)(SAMPLES).detach(), logits)]
    fedntd.mean_divergence(*pair).backward()
    assert torch.equal(logits.grad[range(6), LABELS], torch.zeros(6, dtype=torch.float64))
    assert logits.grad.abs().max() > 0.01


def test_fedntd_needs_two_wrong_classes():
    binary = Task(linear(0), cross_entropy, PLAIN, {}, 0, LABELS, 2, torch.Generator())
    with pytest.raises(FedstageError, match="needs at least 3 classes, and the data have 2"):
        local_trainer(FedNtd(name="fedntd")).objective(binary)


@pytest.mark.parametrize("tau", [0.5, 3.0])
def test_fedlc_takes_margins_from_logits_and_leaves_out_classes_without_samples(tau):
    model = linear(0)
    logits = model(SAMPLES).detach().requires_grad_()
    of_logits = local_trainer(FedLc(name="fedlc", tau=tau)).objective(task(model))
    loss = of_logits(nn.Identity(), logits, LABELS)
    margins = {0: tau / 3**0.25, 1: tau / 2**0.25, 3: tau}
    total = 0.0
    for row, label in zip(logits.tolist(), LABELS.tolist(), strict=True):
        powers = {c: math.exp(row[c] - margin) for c, margin in margins.items()}
        total -= math.log(powers[label] / sum(powers.values()))
    assert loss.item() == pytest.approx(total / 6, rel=1e-6)
    loss.backward()
    assert logits.grad.isfinite().all()
    assert torch.equal(logits.grad[:, 2], torch.zeros(6, dtype=torch.float64))
