"""Polychotomous voting: counts and limits; `test_aggregators.py` has all decisions by hand."""

import torch

from fedstage.algorithm.one_shot.fitting import count_votes

C = 3


def voted(*rows, classes=C):
    """Logits [M, n, C] of members that vote as the rows say."""
    return torch.nn.functional.one_hot(torch.tensor(rows), classes).float()


# --- counting -------------------------------------------------------------------------------------


def test_votes_are_counted_by_member_vote_and_truth():
    labels = torch.tensor([0, 0, 1, 2])
    logits = voted([0, 1, 1, 2], [2, 2, 2, 2])
    found = count_votes(logits, labels)
    assert found.dtype == torch.int64
    assert found.tolist() == [
        [[1, 0, 0], [1, 1, 0], [0, 0, 1]],
        [[0, 0, 0], [0, 0, 0], [2, 1, 1]],
    ]
