"""Areas under ROC curves and balanced accuracies against scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from fedstage.algorithm.measures.scores import score


def drawn(classes, seed, samples=200, ties=False):
    """Logits that tell something of the labels, in halves where ties are wanted."""
    draw = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), draw.integers(classes, size=samples - classes)])
    logits = draw.normal(size=(samples, classes)) + 1.5 * np.eye(classes)[labels]
    if ties:
        logits = np.round(2 * logits) / 2
    return torch.from_numpy(logits).float(), labels


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_area_of_two_classes(seed, ties):
    logits, labels = drawn(2, seed, ties=ties)
    expected = 100 * roc_auc_score(labels, (logits[:, 1] - logits[:, 0]).numpy())
    assert 50 < expected < 100
    assert score(logits, torch.from_numpy(labels)).auc == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("classes", [3, 8])
def test_mean_area_of_each_class_against_the_rest(classes, ties):
    logits, labels = drawn(classes, seed=classes, ties=ties)
    odds = logits.double().softmax(1).numpy()
    expected = 100 * roc_auc_score(labels, odds, multi_class="ovr", average="macro")
    assert score(logits, torch.from_numpy(labels)).auc == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("classes", [2, 8])
def test_balanced_accuracy(classes):
    logits, labels = drawn(classes, seed=0)
    expected = 100 * balanced_accuracy_score(labels, logits.argmax(1).numpy())
    found = score(logits, torch.from_numpy(labels))
    assert found.balanced_accuracy == pytest.approx(expected, rel=1e-12)
    assert abs(found.balanced_accuracy - found.accuracy) > 0.01


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
def test_balanced_accuracy_without_samples_of_a_class():
    logits, labels = drawn(4, seed=0)
    labels[labels == 3] = 0
    expected = 100 * balanced_accuracy_score(labels, logits.argmax(1).numpy())
    found = score(logits, torch.from_numpy(labels))
    assert found.balanced_accuracy == pytest.approx(expected, rel=1e-12)
    assert found.auc is None
