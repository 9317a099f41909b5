"""FedGKD: distances to the last global models, by hand."""

from math import exp, log

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fedstage.algorithm.local_trainers import Task, local_trainer
from fedstage.algorithm.local_trainers.fedgkd import votes
from fedstage.protocol.exchange import history, models_sent
from fedstage.settings.local_training import FedGkd
from fedstage.training.passes import PLAIN

CLASSES, GAMMA = 3, 0.6
LABELS = torch.tensor([0, 2, 1, 1])
SAMPLES = torch.arange(20, dtype=torch.float64).reshape(4, 5).cos()


def linear(seed):
    model = nn.Linear(5, CLASSES).double()
    with torch.no_grad():
        for number, weights in enumerate(model.parameters(), seed):
            values = torch.arange(weights.numel()).reshape(weights.shape)
            weights.copy_(values.mul(number + 1).sin())
    return model


def of_history(model, history=(), losses=(), **settings):
    """Return the loss, beyond the cross entropy, of a client that has this history."""
    chosen = FedGkd(name="fedgkd", **{"gamma": GAMMA} | settings)
    past = tuple(one.state_dict() for one in history)
    own = torch.Generator(), past, losses
    task = Task(linear(9), cross_entropy, PLAIN, {}, 0, LABELS, CLASSES, *own)
    loss = local_trainer(chosen).objective(task)(model, SAMPLES, LABELS)
    return loss - cross_entropy(model(SAMPLES), LABELS)


def divergence(known, learnt, tau):
    total = 0.0
    for q, p in zip(known(SAMPLES).tolist(), learnt(SAMPLES).tolist(), strict=True):
        q, p = ([exp(z / tau) for z in one] for one in (q, p))
        q, p = ([value / sum(one) for value in one] for one in (q, p))
        total += sum(a * log(a / b) for a, b in zip(q, p, strict=True))
    return tau**2 * total / len(LABELS)


def mean_of(*models):
    mean = linear(0)
    with torch.no_grad():
        for weights, *others in zip(
            mean.parameters(), *(m.parameters() for m in models), strict=True
        ):
            weights.copy_(sum(others) / len(others))
    return mean


@pytest.mark.parametrize("tau", [1.0, 2.5])
def test_the_teacher_is_the_mean_of_weights_and_not_of_outputs(tau):
    past, model = [linear(seed) for seed in (1, 4, 6)], linear(2)
    found = of_history(model, past, temperature=tau).item()
    assert found == pytest.approx(GAMMA / 2 * divergence(mean_of(*past), model, tau))
    of_each = sum(divergence(one, model, tau) for one in past) / 3
    assert abs(found - GAMMA / 2 * of_each) > 0.01


def test_models_vote_by_their_losses_on_the_servers_samples():
    past, model = [linear(1), linear(4)], linear(2)
    found = of_history(model, past, (0.5, 1.5), teacher="vote", temperature=2.0)
    shares = [exp(-loss) / (exp(-0.5) + exp(-1.5)) for loss in (0.5, 1.5)]
    expected = sum(
        share * divergence(one, model, 2.0) for share, one in zip(shares, past, strict=True)
    )
    assert found.item() == pytest.approx(GAMMA / 2 * expected)
    assert sum(votes((3.0, 1.0, 2.0))) == pytest.approx(1)


def test_of_one_model_there_is_no_gradient_where_it_is_the_students():
    """M = 1, at the first step of a round."""
    model = linear(1)
    loss = of_history(model, [model])
    assert loss.item() == pytest.approx(0, abs=1e-12)
    loss.backward()
    plain = [weights.grad for weights in model.parameters()]
    assert all(gradient.abs().max() < 1e-12 for gradient in plain)


@pytest.mark.parametrize(
    ("settings", "length", "sent"),
    [
        ({}, 5, {0: 1, 1: 1, 2: 2, 5: 2}),
        ({"models": 1}, 1, {0: 1, 1: 1}),
        ({"teacher": "vote"}, 5, {0: 1, 1: 1, 3: 3, 5: 5}),
        ({"gamma": 0.0}, 0, {0: 1}),
    ],
)
def test_the_mean_travels_beside_the_model_and_of_those_that_vote_all(settings, length, sent):
    chosen = FedGkd(name="fedgkd", **settings)
    assert history(chosen) == length
    assert {known: models_sent(chosen, known) for known in sent} == sent
