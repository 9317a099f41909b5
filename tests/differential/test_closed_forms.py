"""Heads without gradients against plain NumPy and scikit-learn, on all samples in one place."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.mixture import GaussianMixture

from fedstage.algorithm.one_shot.gaussian_heads import head, moments_of, total
from fedstage.algorithm.one_shot.generators import mixture
from fedstage.models.architectures.perceptron import network
from fedstage.randomness import torch_generator
from fedstage.settings.generators import Mixture
from fedstage.settings.models import Safle
from fedstage.settings.numerics import Numerics
from fedstage.settings.transfers import ClosedForm, Ridge

N, WIDTH, CLASSES = 200, 7, 4
GENERATOR = np.random.default_rng(0)
LABELS = GENERATOR.integers(CLASSES, size=N)
FEATURES = GENERATOR.normal(size=(N, WIDTH)) @ GENERATOR.normal(size=(WIDTH, WIDTH))
FEATURES += LABELS[:, None]
INDICATORS = np.eye(CLASSES)[LABELS]

#: By client: in order, one of them with a single class, and unequal at random.
PARTITIONS = {
    "one": [np.arange(N)],
    "by class": [np.flatnonzero(label == LABELS) for label in range(CLASSES)],
    "random": np.split(GENERATOR.permutation(N), [3, 20, 21, 150]),
}


def computed(settings, clients, features=FEATURES):
    parts = [
        moments_of(torch.tensor(features[own]), torch.tensor(LABELS[own]), CLASSES)
        for own in clients
    ]
    weights, biases = head(ClosedForm(name="closed_form", **settings), total(parts), len(parts))
    return weights.numpy(), biases.numpy()


@pytest.mark.parametrize("clients", PARTITIONS.values(), ids=PARTITIONS)
@pytest.mark.parametrize("clean", [True, False])
def test_afl_is_ridge_regression_on_all_features(clients, clean):
    weights, biases = computed({"ridge": Ridge(gamma=0.5, clean=clean)}, clients)
    added = 0.0 if clean else 0.5 * len(clients)
    augmented = np.vstack([FEATURES, np.sqrt(added) * np.eye(WIDTH)])
    sides = np.vstack([INDICATORS, np.zeros((WIDTH, CLASSES))])
    expected, *_ = np.linalg.lstsq(augmented, sides)
    assert_allclose(weights.T, expected, rtol=0, atol=1e-10)
    assert not biases.any()


def test_afl_is_what_its_clients_and_pairwise_aggregation_give():
    # The absolute-aggregation law of the paper, then its removal of K gamma.
    gamma, clients = 0.5, PARTITIONS["random"]
    solved, collected = None, None
    for own in clients:
        gram = FEATURES[own].T @ FEATURES[own] + gamma * np.eye(WIDTH)
        local = np.linalg.solve(gram, FEATURES[own].T @ INDICATORS[own])
        if solved is None:
            solved, collected = local, gram
            continue
        solved = np.linalg.solve(collected + gram, collected @ solved + gram @ local)
        collected = collected + gram
    assert_allclose(computed({"ridge": Ridge(gamma=gamma, clean=False)}, clients)[0].T, solved)
    added = len(clients) * gamma
    cleaned = solved + added * np.linalg.solve(collected - added * np.eye(WIDTH), solved)
    assert_allclose(computed({"ridge": Ridge(gamma=gamma)}, clients)[0].T, cleaned)


@pytest.mark.parametrize("clients", PARTITIONS.values(), ids=PARTITIONS)
def test_fedcgs_has_the_covariance_of_all_samples(clients):
    weights, biases = computed({"covariance": "total", "shrinkage": 0.0}, clients)
    inverse = np.linalg.inv(np.cov(FEATURES.T))
    means = np.stack([FEATURES[label == LABELS].mean(0) for label in range(CLASSES)])
    shares = np.log(np.bincount(LABELS) / N)
    expected = FEATURES @ inverse @ means.T - np.diag(means @ inverse @ means.T) / 2 + shares
    assert_allclose(FEATURES @ weights.T + biases, expected, atol=1e-9)


def test_ghofl_is_discriminant_analysis_of_all_features():
    weights, biases = computed({"shrinkage": 0.0}, PARTITIONS["random"])
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(FEATURES, LABELS)
    logits = FEATURES @ weights.T + biases
    logits -= np.log(np.exp(logits).sum(1, keepdims=True))
    assert_allclose(logits, theirs.predict_log_proba(FEATURES), atol=1e-8)


def codes_of(features, bucketings, bins, group, order):
    """The map of SAFLe by loops."""
    rows = []
    for row in features:
        seen = np.clip((row - row.mean()) / np.sqrt(row.var() + 1e-5), -3, 3)
        step, bits = 6 / bins, []
        for value in seen:
            for bucketing in range(bucketings):
                for place in range(bins):
                    centre = -3 + step * (place + (bucketing + 1) / (bucketings + 1))
                    bits.append(abs(value - centre) < step)
        shuffled = [bits[place] for place in order]
        indicators = []
        for start in range(0, len(shuffled), group):
            code = sum(bit << place for place, bit in enumerate(shuffled[start : start + group]))
            indicators += [float(code == other) for other in range(2**group)]
        rows.append(indicators)
    return np.array(rows)


@pytest.mark.parametrize(("bucketings", "bins", "group"), [(1, 2, 4), (2, 3, 5)])
def test_safle_is_ridge_regression_on_codes(bucketings, bins, group):
    settings = Safle(name="safle", bucketings=bucketings, bins=bins, group=group, shuffling=3)
    model = network(settings, (WIDTH,), CLASSES)
    order = torch.randperm(WIDTH * bucketings * bins, generator=torch.Generator().manual_seed(3))
    expected = codes_of(FEATURES, bucketings, bins, group, order.tolist())
    found = model[:2](torch.tensor(FEATURES)).numpy()
    assert_allclose(found, expected)
    assert len({tuple(row) for row in found}) > 20
    clients = PARTITIONS["random"]
    weights, _ = computed({"ridge": Ridge(gamma=0.1, clean=False)}, clients, found)
    gram = expected.T @ expected + 0.1 * len(clients) * np.eye(expected.shape[1])
    assert_allclose(weights.T, np.linalg.solve(gram, expected.T @ INDICATORS), atol=1e-10)


@pytest.mark.parametrize("covariance", ["spherical", "diag", "full"])
def test_fedpft_draws_from_the_mixtures_of_classes(covariance):
    settings = Mixture(name="mixture", components=2, covariance=covariance)
    info, key = {"shape": [WIDTH], "classes": CLASSES}, (0, "client")
    given = torch.tensor(FEATURES).float(), torch.tensor(LABELS)
    sent, _ = mixture.train(settings, *given, info, key, Numerics())
    sizes = {"spherical": 1, "diag": WIDTH, "full": WIDTH * WIDTH}
    assert {value.dtype for value in sent.values()} == {torch.float16}
    numbers = CLASSES * 2 * (1 + WIDTH + sizes[covariance])
    assert sum(value.nbytes for value in sent.values()) == 2 * numbers
    seed = int(torch.randint(2**31, (), generator=torch_generator(*key)))
    labels = torch.arange(CLASSES).repeat_interleave(20_000)
    drawn = mixture.sample(settings, sent, labels, info, torch_generator("draws"), "cpu").numpy()
    for label in range(CLASSES):
        theirs = GaussianMixture(
            2, covariance_type=covariance, random_state=seed, tol=1e-12, max_iter=1000
        ).fit(FEATURES[label == LABELS].astype(np.float32).astype(np.float64))
        assert_allclose(sent[f"{label}.means"], theirs.means_.astype(np.float16))
        own, expected = drawn[labels == label], theirs.sample(20_000)[0]
        deviation = expected.std(0)
        assert_allclose(own.mean(0) / deviation, expected.mean(0) / deviation, atol=0.05)
        assert_allclose(np.cov(own.T) / np.outer(deviation, deviation),
                        np.corrcoef(expected.T), atol=0.06)  # fmt: skip


def test_fedpft_describes_a_class_of_few_samples():
    settings = Mixture(name="mixture", components=5)
    labels = torch.tensor([0, 1, 1])
    features = torch.arange(6.0).view(3, 2)
    sent, _ = mixture.train(settings, features, labels, {"shape": [2]}, (0,), Numerics())
    assert sent["0.means"].tolist() == [[0, 1]]
    assert sent["1.means"].tolist() == [[3, 4]]
