import math
import statistics

import pytest
import torch

from fedstage.scores import own_accuracies, score, spread

# Predictions 0, 1, 1, 2, 2 of classes 0, 1, 2, 2, 0; class 3 does not occur.
LOGITS = torch.tensor([[3.0, 0, 0, 0], [0, 3, 0, 0], [0, 3, 1, 0], [0, 0, 3, 0], [1, 0, 3, 0]])
LABELS = torch.tensor([0, 1, 2, 2, 0])


def test_accuracy_and_loss_by_hand():
    result = score(LOGITS, LABELS)
    assert result.accuracy == pytest.approx(60.0)
    sums = [[3, 0, 0, 0], [0, 3, 0, 0], [0, 3, 1, 0], [0, 0, 3, 0], [1, 0, 3, 0]]
    losses = [
        math.log(sum(math.exp(value) for value in row)) - row[label]
        for row, label in zip(sums, LABELS.tolist(), strict=True)
    ]
    assert result.loss == pytest.approx(statistics.fmean(losses), rel=1e-6)


def test_accuracy_by_class_is_nan_for_a_class_that_does_not_occur():
    by_class = score(LOGITS, LABELS).by_class
    assert by_class[:3].tolist() == [50.0, 100.0, 50.0]
    assert by_class[3].isnan()
    assert by_class.dtype == torch.float64


def test_own_accuracy_weighs_classes_by_the_clients_samples():
    counts = {0: {0: 3, 1: 1}, 1: {2: 8}, 2: {1: 2, 2: 6}}
    own = own_accuracies([score(LOGITS, LABELS)], counts)
    assert own == pytest.approx([(3 * 50 + 100) / 4, 50.0, (2 * 100 + 6 * 50) / 8])


def test_classes_that_the_evaluated_set_lacks_are_left_out():
    assert own_accuracies([score(LOGITS, LABELS)], {0: {1: 1, 3: 99}}) == [100.0]
    assert own_accuracies([score(LOGITS, LABELS)], {0: {0: 4, 1: 4, 3: 8}}) == [75.0]


def test_clients_are_in_order_whatever_the_order_of_the_histogram():
    counts = {10: {1: 1}, 2: {0: 1}, 0: {2: 1, 1: 1}}
    assert own_accuracies([score(LOGITS, LABELS)], counts) == [75.0, 50.0, 100.0]


def test_each_client_is_scored_by_its_own_model():
    perfect = score(4 * torch.eye(4)[LABELS], LABELS)
    own = own_accuracies([score(LOGITS, LABELS), perfect], {1: {0: 5}, 0: {0: 5}})
    assert own == [50.0, 100.0]


def test_spread_is_the_deviation_of_a_sample():
    assert spread([1.0, 2.0, 4.0]) == pytest.approx(math.sqrt(7 / 3))
    assert spread([5.0, 5.0]) == 0.0
    assert spread([5.0]) is None
    assert spread([]) is None


def test_a_client_whose_classes_are_not_evaluated_is_left_out():
    scores = [score(torch.eye(3), torch.tensor([0, 1, 1]))]
    assert own_accuracies(scores, {0: {0: 1}, 1: {2: 5}}) == [100.0]


def test_a_wrong_number_of_models_is_refused():
    scores = [score(torch.eye(3), torch.tensor([0, 1, 2]))] * 2
    with pytest.raises(ValueError, match="zip"):
        own_accuracies(scores, {client: {0: 1} for client in range(5)})
