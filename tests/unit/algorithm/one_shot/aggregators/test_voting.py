"""Polychotomous voting: counts and limits; `test_aggregators.py` has all decisions by hand."""

import torch

from fedstage.algorithm.one_shot.aggregators import Knowledge, combination, voting
from fedstage.algorithm.one_shot.fitting import count_votes
from fedstage.settings.aggregators import Voting

C = 3


VOTING = Voting(name="voting")


def knowledge(votes):
    votes = torch.as_tensor(votes)
    ones = torch.ones(votes.shape[0], votes.shape[1], dtype=torch.int64)
    return Knowledge(ones, (1, 8, 8), votes)


def voted(*rows, classes=C):
    """Logits [M, n, C] of members that vote as the rows say."""
    return torch.nn.functional.one_hot(torch.tensor(rows), classes).float()


def decide(votes, logits):
    fitted = voting.parameters(VOTING, knowledge(votes), torch.Generator())
    said = combination(VOTING)(fitted, logits, None)
    return said.argmax(1).tolist(), said


def counts_of(correct, total=10, classes=C):
    """Votes [C, C] of a member that is right in `correct` of `total`, else equally wrong."""
    wrong = (total - correct) // (classes - 1)
    table = torch.full((classes, classes), wrong)
    return table.fill_diagonal_(correct)


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


# --- decisions ------------------------------------------------------------------------------------


def test_many_voters_do_not_underflow():
    members = torch.stack([counts_of(4)] * 2000)
    chosen, scores = decide(members, voted(*[[1]] * 1100, *[[0]] * 900))
    assert chosen == [1]
    assert bool(scores.isfinite().all())
