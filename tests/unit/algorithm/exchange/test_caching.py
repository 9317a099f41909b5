"""Labels that are kept over rounds, by a cache that is written out for each client."""

import pytest
import torch
from tests.shared.settings import federated

from fedstage.algorithm.exchange.caching import after_round, labels_sent
from fedstage.algorithm.exchange.public_samples import samples_of
from fedstage.algorithm.global_trainers.transfers import transfer
from fedstage.settings.recipes import Recipe
from fedstage.settings.transfers import KlTransfer

COUNT, ROUNDS = 30, 12
BASE = federated(
    model="logistic_regression",
    ensemble="clients",
    server={"steps": 1, "batch_size": 8, "learning_rate": 0.1, "samples_a_round": 12},
    seed=3,
)


def recipe(duration, **server):
    cache = {"duration": duration}
    changes = {"local": {"digest": {"cache": cache}}, "server": BASE["server"] | server}
    return Recipe.model_validate(BASE | changes)


def simulated(one, duration):
    """Yield each round's samples, those asked for, and the round of each kept label."""
    kept = {}
    for round_ in range(1, ROUNDS + 1):
        drawn = samples_of(one, COUNT, round_)
        used = range(COUNT) if drawn is None else drawn.tolist()
        asked = [x for x in used if x not in kept or kept[x] + duration <= round_]
        for x in asked:
            if x in kept:
                del kept[x]
            else:
                kept[x] = round_
        yield list(used), asked, dict(kept)


DURATIONS = (1, 2, 4, 50)


@pytest.mark.parametrize("duration", DURATIONS)
@pytest.mark.parametrize("most", [None, 12])
def test_clients_are_asked_for_labels_that_are_not_known_or_too_old(duration, most):
    one = recipe(duration, samples_a_round=most)
    for round_, (_, asked, kept) in enumerate(simulated(one, duration), 1):
        found, made = after_round(one, COUNT, round_)
        assert found.tolist() == asked
        assert {x: t for x, t in enumerate(made.tolist()) if t} == kept
    if duration == 1:
        assert len(found) == (most or COUNT)  # nothing serves twice
    if duration == 50 and most is None:
        assert len(found) == 0  # after the first round


@pytest.mark.parametrize("duration", DURATIONS)
@pytest.mark.parametrize("rounds", [[1, 2, 3, 4, 5, 6], [1, 4, 5, 12], [3, 11]])
def test_whoever_was_away_gets_what_it_lacks_to_have_the_servers_cache(duration, rounds):
    """Labels are told apart by the rounds in which they were made."""
    one, own, before = recipe(duration), {}, None
    states = list(simulated(one, duration))
    for round_ in rounds:
        since = None if before is None else round_ - before
        if round_ == 1:
            assert labels_sent(one, COUNT, round_, since) == 0
        else:
            _, asked, kept = states[round_ - 2]
            new = {x: t for x, t in kept.items() if own.get(x) != t}
            once = [x for x in asked if x not in kept]
            assert labels_sent(one, COUNT, round_, since) == len(new) + len(once)
            own = dict(kept)
        before = round_


def test_enhanced_entropy_reduction_is_a_power_of_mean_probabilities():
    """As `kl` at temperature 1 with `sharpening`; the gradient is that of the cross entropy."""
    mean = torch.tensor([[0.7, 0.2, 0.1], [0.4, 0.35, 0.25]])
    server = recipe(50, temperature=1.0, tau_squared=False, sharpening=2.0).server
    student = torch.randn(2, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    kl = KlTransfer(name="kl")
    targets = transfer(kl).targets(kl, mean.log(), mean.log()[None])
    (found,) = torch.autograd.grad(transfer(kl).loss(kl, server)(student, targets), student)
    powered = mean.square() / mean.square().sum(1, keepdim=True)
    expected = (student.softmax(1) - powered).detach() / len(mean)
    torch.testing.assert_close(found, expected)
