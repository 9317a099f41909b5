"""Accuracy by client and class."""

import pytest
import torch

from fedstage.algorithm.measures.model_metrics import of_classes, of_mixes, of_own
from fedstage.algorithm.measures.scores import own_accuracies, score

LOGITS = torch.tensor([[2.0, 1.0], [2.0, 1.0], [0.0, 1.0], [3.0, 1.0]])
LABELS = torch.tensor([0, 0, 1, 1])


COUNTS = {0: {0: 3, 1: 1}, 2: {1: 5}, 5: {}}


def test_each_class_has_the_share_of_its_samples_that_are_right():
    found = [(row["label"], row["samples"], row["accuracy"]) for row in of_classes(LOGITS, LABELS)]
    assert found == [(0, 2, 100.0), (1, 2, 50.0)]


def test_each_client_has_the_share_of_its_own_samples_that_are_right():
    right = torch.tensor([True, False, True, True, False, True])
    owners = torch.tensor([2, 1, 2, 1, -1, 3])  # of no client, and of the server's share
    rows = of_own("test", right, owners, 3)
    assert {row["of"] for row in rows} == {"test"}
    found = [(row["client"], row["samples"], row["accuracy"]) for row in rows]
    assert found == [(0, 0, None), (1, 2, 50.0), (2, 2, 100.0)]


def test_mixes_are_those_whose_mean_metrics_have():
    found = list(of_mixes(score(LOGITS, LABELS), COUNTS))
    assert [(row["client"], row["samples"]) for row in found] == [(0, 4), (2, 5), (5, 0)]
    assert [row["accuracy"] for row in found] == [pytest.approx(87.5), 50.0, None]
    own = own_accuracies([score(LOGITS, LABELS)], COUNTS)
    assert own == [row["accuracy"] for row in found if row["accuracy"] is not None]
