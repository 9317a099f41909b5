"""Training of an aggregator whose server gets sums of masked changes alone."""

import sys

import numpy as np
import pytest
import torch

from fedstage.algorithm.one_shot.aggregator_training import Samples, Task, federated
from fedstage.algorithm.one_shot.aggregator_training.secure_change import (
    SecureRound,
    secure_change,
    secure_sum,
)
from fedstage.algorithm.one_shot.aggregators import Knowledge, combination, rule
from fedstage.errors import FedstageError
from fedstage.randomness import torch_generator
from fedstage.settings.aggregation import SecureAggregation
from fedstage.settings.aggregators import FederatedRounds, Mlp

SECURE = {"threshold": 2, "clip": 2.0, "most_samples": 40}
NUMBERS = 3 * 4 * 5 + 5 * 4  # of the MLP
M, C = 3, 4
MLP = Mlp(name="mlp", hidden=5)
AVERAGE = {"server_optimizer": "average"}


def clients():
    generator = torch.Generator().manual_seed(1)
    sizes = {0: 20, 1: 7, 2: 40}
    return {
        client: Samples(
            torch.randn(M, size, C, generator=generator),
            torch.randint(C, (size,), generator=generator),
        )
        for client, size in sizes.items()
    }


def rounds(**changes):
    settings = {"rounds": 12, "batch_size": 8, "learning_rate": 0.5}
    settings |= {"server_optimizer": {"adam": {"learning_rate": 0.02}}}
    return FederatedRounds.model_validate({"name": "federated", **settings, **changes})


def started():
    known = Knowledge(torch.ones(M, C, dtype=torch.int64), (1, 8, 8))
    return rule(MLP).parameters(MLP, known, torch_generator(0, "start"))


def trained(settings, samples=None):
    task = Task(combination(MLP), started(), samples or clients(), 0)
    return federated.train(settings, task)


def secure_rounds(secure=SECURE, **changes):
    return rounds(secure=secure, **changes)


def farthest(one, other):
    return max(float((one[name] - other[name]).abs().max()) for name in one)


@pytest.mark.parametrize("weights", ["uniform", "samples"])
@pytest.mark.parametrize("bits", [24, 10])
def test_a_round_is_that_of_a_plain_one_up_to_rounding(weights, bits):
    changes = AVERAGE | {"rounds": 1, "weights": weights}
    plain = trained(rounds(**changes)).parameters
    found = trained(secure_rounds(SECURE | {"bits": bits}, **changes)).parameters
    step = 2 * SECURE["clip"] / (2**bits - 1)
    samples = 20 + 7 + 40
    most = step if weights == "uniform" else step * 3 * SECURE["most_samples"] / samples
    assert 0 < farthest(found, plain) <= most + 1e-6


def test_who_drops_out_late_counts_and_who_drops_out_early_does_not():
    start = started()
    ended = {u: ({n: v + 0.1 * (u + 1) for n, v in start.items()}, 10) for u in range(6)}
    for step in ("share", "masked_input", "unmask"):
        secure = SecureAggregation.model_validate(SECURE | {"threshold": 2, "dropped": {step: 0.4}})
        of = SecureRound(secure, (0, "", "aggregator"), 1, "aggregator", "")
        gone = set(ended) - set(of.there(ended, step))
        assert 0 < len(gone) < 4
        counted = [u for u in ended if step == "unmask" or u not in gone]
        change, _ = secure_change(secure_rounds(), secure, start, ended, 1, (0, ""))
        expected = np.mean([0.1 * (u + 1) for u in counted])
        for value in change.values():
            assert torch.allclose(value, torch.full_like(value, expected), atol=1e-5)


def test_too_few_answers_stop_the_training_in_one_line():
    with pytest.raises(FedstageError) as caught:
        trained(secure_rounds(SECURE | {"dropped": {"masked_input": 1.0}}))
    assert str(caught.value) == (
        "aggregator, round 1: 0 participants answered in the step 'masked input' of secure "
        "aggregation: needs aggregator_training.secure.threshold = 2"
    )


def test_the_server_learns_no_loss_and_messages_count():
    done = trained(secure_rounds(rounds=3))
    assert [row.loss for row in done.rounds] == [None] * 3
    keys, shares, vector, revealed = 64, 3 * 82, 4 * (NUMBERS + 1), 3 * 33
    up, down = keys + shares + vector + revealed, 3 * keys + 3 * 82 + 3 * 4
    assert [row.messages for row in done.rounds] == [(up, down)] * 3


def test_the_server_computes_with_masked_vectors_and_never_both_shares(monkeypatch):
    """All changes are equal, but what the server gets of them is uniform."""
    seen = []

    def unmasked_sum(vectors, public, revealed, threshold):
        seen.append((vectors, revealed))
        return original(vectors, public, revealed, threshold)

    module = sys.modules[SecureRound.__module__]
    original = module.unmasked_sum
    monkeypatch.setattr(module, "unmasked_sum", unmasked_sum)
    values = {u: np.full(50_000, 7, dtype=np.uint32) for u in range(4)}
    secure = SecureAggregation.model_validate(SECURE | {"dropped": {"masked_input": 0.3}})
    summed = secure_sum(SecureRound(secure, (0,), 2, "", ""), values)
    ((vectors, revealed),) = seen
    assert set(vectors) == set(summed.answered.sent) < set(values)
    for shares in revealed.values():
        assert not set(shares.seeds) & set(shares.mask_keys)
    for vector in vectors.values():
        counts = np.bincount(vector >> 24, minlength=256)
        expected = len(vector) / 256
        chi_squared = ((counts - expected) ** 2 / expected).sum()
        assert 170 < chi_squared < 355  # of 255 degrees of freedom, 1 in 10,000 beyond either end
