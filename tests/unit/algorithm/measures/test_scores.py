import math
import statistics

import pytest
import torch

from fedstage.algorithm.measures.scores import area_under_curve, own_accuracies, score

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


def test_area_of_two_classes_is_the_share_of_pairs_in_the_right_order():
    scores = torch.tensor([0.5, 2.0, 2.0, 3.0, -1.0])
    labels = torch.tensor([0, 1, 0, 1, 1])
    # Of the six pairs (1 over 0): 2 > 0.5, 2 = 2, 3 > 0.5, 3 > 2; -1 is below both.
    logits = torch.stack([torch.full_like(scores, 7.0), 7.0 + scores], 1)
    assert area_under_curve(logits, labels) == pytest.approx(100 * 3.5 / 6)


def test_area_of_more_classes_is_the_mean_over_each_against_the_rest():
    logits = torch.tensor([[2.0, 0, 0], [0, 2, 0], [0, 0, 2], [0, 2, 0]])
    labels = torch.tensor([0, 1, 2, 2])
    # A tie is half a pair: of the first two with the last one.
    areas = [1.0, (1 + 1 + 0.5) / 3, (1 + 1 + 0.5 + 0.5) / 4]
    assert area_under_curve(logits, labels) == pytest.approx(100 * statistics.fmean(areas))


@pytest.mark.parametrize(
    ("logits", "labels"),
    [
        (LOGITS, LABELS),  # without samples of class 3
        (torch.eye(2), torch.tensor([1, 1])),
        (torch.tensor([[0.0, math.nan], [1.0, 0.0]]), torch.tensor([0, 1])),
        (torch.tensor([[0.0, math.inf], [1.0, 0.0]]), torch.tensor([0, 1])),
    ],
    ids=["a class is missing", "a class is alone", "nan", "inf"],
)
def test_there_need_be_no_area(logits, labels):
    assert area_under_curve(logits, labels) is None


def test_own_accuracy_weighs_the_classes_that_are_evaluated_by_the_clients_samples():
    scores = [score(LOGITS, LABELS)]
    own = own_accuracies(scores, {0: {0: 3, 1: 1}, 1: {2: 8}, 2: {1: 2, 2: 6}})
    assert own == pytest.approx([(3 * 50 + 100) / 4, 50.0, (2 * 100 + 6 * 50) / 8])
    assert own_accuracies(scores, {0: {1: 1, 3: 99}}) == [100.0]  # class 3 is not
    assert own_accuracies(scores, {0: {0: 4, 1: 4, 3: 8}}) == [75.0]
    assert own_accuracies(scores, {0: {0: 1}, 1: {3: 5}}) == [50.0]
    # Clients are in order, whatever the order of the histogram.
    assert own_accuracies(scores, {10: {1: 1}, 2: {0: 1}, 0: {2: 1, 1: 1}}) == [75.0, 50.0, 100.0]


def test_each_client_is_scored_by_its_own_model():
    perfect = score(4 * torch.eye(4)[LABELS], LABELS)
    own = own_accuracies([score(LOGITS, LABELS), perfect], {1: {0: 5}, 0: {0: 5}})
    assert own == [50.0, 100.0]


def test_a_wrong_number_of_models_is_refused():
    scores = [score(torch.eye(3), torch.tensor([0, 1, 2]))] * 2
    with pytest.raises(ValueError, match="zip"):
        own_accuracies(scores, {client: {0: 1} for client in range(5)})
