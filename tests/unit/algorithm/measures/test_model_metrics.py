"""Accuracy of clients on their own test samples, and the estimate where these are unknown."""

import statistics

import pytest
import torch

from fedstage.algorithm.measures.model_metrics import mean_metrics, model_metrics
from fedstage.algorithm.measures.scores import accuracy_on_own, score

COUNTS = {0: {0: 3}, 1: {1: 2}, 2: {0: 1, 2: 4}}


def drawn(n=67):
    """Return logits, labels and owners of samples, some of which belong to no client."""
    generator = torch.Generator().manual_seed(5)
    owners = torch.randint(-1, 3, (n,), generator=generator)
    logits = torch.randn(n, 3, generator=generator)
    return logits, torch.randint(0, 3, (n,), generator=generator), owners


def by_hand(logits, labels, owners):
    """Return each client's accuracy, sample by sample."""
    hits = {}
    for answers, label, owner in zip(
        logits.tolist(), labels.tolist(), owners.tolist(), strict=True
    ):
        if owner >= 0:
            hits.setdefault(owner, []).append(answers.index(max(answers)) == label)
    return {client: 100 * statistics.mean(map(float, own)) for client, own in hits.items()}


def test_a_shared_model_is_scored_on_each_clients_own_samples():
    logits, labels, owners = drawn()
    expected = by_hand(logits, labels, owners)
    assert len(set(expected.values())) == 3
    metrics = model_metrics(logits, labels, COUNTS, owners)
    assert metrics["own_test_mean"] == pytest.approx(statistics.mean(expected.values()))
    assert metrics["own_test_std"] == pytest.approx(statistics.stdev(expected.values()))
    assert (metrics["own_mean"], metrics["own_std"]) == (None, None)


def test_the_estimate_stands_where_samples_belong_to_no_client():
    logits, labels, _ = drawn()
    metrics = model_metrics(logits, labels, COUNTS)
    assert (metrics["own_test_mean"], metrics["own_test_std"]) == (None, None)
    by_class = score(logits, labels).by_class.tolist()
    mixes = [by_class[0], by_class[1], (by_class[0] + 4 * by_class[2]) / 5]
    assert metrics["own_mean"] == pytest.approx(statistics.mean(mixes))


def test_a_model_of_a_client_counts_on_its_own_samples_only():
    logits, labels, owners = drawn()
    expected = by_hand(logits, labels, owners)
    own = [accuracy_on_own(logits, labels, owners, client) for client in range(3)]
    assert own == [[pytest.approx(expected[client])] for client in range(3)]
    assert accuracy_on_own(logits, labels, owners, 7) == []
    metrics = mean_metrics([(1, logits)], labels, COUNTS, owners)
    assert metrics["own_test_mean"] == pytest.approx(expected[1])
    assert metrics["own_test_std"] is None
