"""Calibration, disagreement and gain of ensembles against plain sums over samples and pairs."""

from itertools import combinations

import numpy as np
import pytest
import torch

from fedstage.algorithm.measures.model_metrics import mean_metrics, model_metrics
from fedstage.algorithm.measures.scores import calibration_error, disagreement

BINS = 15


def drawn(classes, seed, samples=400, members=5):
    """Return logits of members [M, n, C], some of them sure and some not, and labels."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(classes, size=samples)
    sure = draw.uniform(0.1, 4, size=(members, samples, 1))
    logits = sure * (draw.normal(size=(members, samples, classes)) + 1.2 * np.eye(classes)[labels])
    return logits.astype(np.float32), labels


def probabilities(logits):
    odds = np.exp(logits.astype(np.float64) - logits.max(-1, keepdims=True))
    return odds / odds.sum(-1, keepdims=True)


def slow_ece(logits, labels):
    """Guo et al. (2017), Eq. 3, bin by bin."""
    confidence = probabilities(logits).max(1)
    right = logits.argmax(1) == labels
    total = 0.0
    for m in range(1, BINS + 1):
        inside = [i for i, p in enumerate(confidence) if (m - 1) / BINS < p <= m / BINS]
        if inside:
            gap = np.mean(right[inside]) - np.mean(confidence[inside])
            total += len(inside) / len(labels) * abs(gap)
    return 100 * total


def slow_disagreement(logits):
    pairs = combinations([member.argmax(1) for member in logits], 2)
    return 100 * np.mean([np.mean(one != other) for one, other in pairs])


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("seed", range(3))
def test_calibration(classes, seed):
    (logits,), labels = drawn(classes, seed, members=1)
    expected = slow_ece(logits, labels)
    found = calibration_error(torch.from_numpy(logits), torch.from_numpy(labels))
    assert 1 < expected < 60
    assert found == pytest.approx(expected, rel=1e-9)


def test_a_confidence_at_the_edge_of_two_bins_is_in_the_lower_one():
    """Of two samples, one is sure to 5/15 and right, and one a little surer and wrong."""
    logits = torch.tensor([[0.0, 0.0, 0.0], [0.001, 0.0, 0.0]], dtype=torch.float64)
    expected = 100 * ((1 - 5 / 15) + 5 / 15) / 2
    assert calibration_error(logits, torch.tensor([0, 1])) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_no_calibration_of_logits_that_are_not_finite(value):
    logits = torch.tensor([[0.0, value], [1.0, 0.0]])
    assert calibration_error(logits, torch.tensor([0, 1])) is None


@pytest.mark.parametrize(("classes", "members"), [(2, 2), (3, 7), (10, 20)])
def test_disagreement(classes, members):
    logits, _ = drawn(classes, seed=members, members=members)
    expected = slow_disagreement(logits)
    assert 5 < expected < 95
    chosen = torch.from_numpy(logits.argmax(2))
    assert disagreement(chosen, classes) == pytest.approx(expected, rel=1e-12)


def test_members_that_are_alike_agree_and_one_has_no_pair():
    (logits,), _ = drawn(4, seed=0, members=1)
    chosen = torch.from_numpy(logits.argmax(1))
    assert disagreement(chosen.expand(3, -1), 4) == 0
    assert disagreement(chosen[None], 4) is None


def test_gain_over_the_mean_of_members():
    logits, labels = drawn(6, seed=1)
    mean = logits.astype(np.float64).mean(0)
    accuracies = [100 * np.mean(member.argmax(1) == labels) for member in logits]
    expected = 100 * np.mean(mean.argmax(1) == labels) - np.mean(accuracies)
    found = model_metrics(
        torch.from_numpy(mean), torch.from_numpy(labels), {},
        members=torch.from_numpy(logits.argmax(2)),
    )  # fmt: skip
    assert expected > 5
    assert found["ensemble_gain"] == pytest.approx(expected, rel=1e-9)
    assert found["disagreement"] == pytest.approx(slow_disagreement(logits), rel=1e-12)
    assert found["ece"] == pytest.approx(slow_ece(mean, labels), rel=1e-9)


def test_models_that_are_no_ensemble_have_calibration_alone():
    logits, labels = drawn(5, seed=2)
    tensors, truth = [torch.from_numpy(member) for member in logits], torch.from_numpy(labels)
    nobody = torch.full_like(truth, -1)
    together = mean_metrics([(None, one) for one in tensors], truth, {}, nobody)
    assert together["ece"] == pytest.approx(np.mean([slow_ece(one, labels) for one in logits]))
    for found in (together, model_metrics(tensors[0], truth, {})):
        assert (found["disagreement"], found["ensemble_gain"]) == (None, None)
