"""Polychotomous voting: counts and limits; `test_aggregators.py` has all decisions by hand."""

import pytest
import torch

from fedstage.algorithm.one_shot.aggregators import Knowledge, combination, voting
from fedstage.algorithm.one_shot.fitting import count_votes
from fedstage.errors import FedstageError
from fedstage.settings.aggregators import Voting

C = 3


def settings(**changes):
    return Voting.model_validate({"name": "voting", **changes})


def knowledge(votes):
    votes = torch.as_tensor(votes)
    ones = torch.ones(votes.shape[0], votes.shape[1], dtype=torch.int64)
    return Knowledge(ones, (1, 8, 8), votes)


def voted(*rows, classes=C):
    """Logits [M, n, C] of members that vote as the rows say."""
    return torch.nn.functional.one_hot(torch.tensor(rows), classes).float()


def fitted(votes, **changes):
    return voting.parameters(settings(**changes), knowledge(votes), torch.Generator())


def decide(votes, logits, **changes):
    said = combination(settings(**changes))(fitted(votes, **changes), logits, None)
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


def test_the_counted_prior_is_the_share_of_each_class():
    votes = torch.tensor([[[6, 1, 0], [0, 1, 0], [0, 0, 2]]])
    found = fitted(votes, prior="counted")["log_prior"].exp()
    assert torch.allclose(found, torch.tensor([0.6, 0.2, 0.2]))


# --- votes that were never counted ----------------------------------------------------------------

#: Class 2 has no samples; nobody ever voted for it. Member 0 is always right.
UNSEEN = torch.tensor([[[5, 0, 0], [0, 5, 0], [0, 0, 0]], [[4, 1, 0], [1, 4, 0], [0, 0, 0]]])


def test_where_all_classes_are_excluded_class_0_wins_as_released():
    chosen, scores = decide(UNSEEN, voted([2], [1]), estimate="as_released")
    assert chosen == [0]
    assert scores.tolist() == [[0.0] * C]
    assert decide(UNSEEN, voted([2], [1]), estimate="as_published")[0] == [2]
    assert decide(UNSEEN, voted([0], [0]), estimate="as_released")[0] == [0]


def test_scores_are_finite_where_classes_are_excluded():
    scores = decide(UNSEEN, voted([1], [1]), estimate="as_published")[1]
    assert scores.argmax(1).tolist() == [1]
    assert float(scores.min()) == voting.FLOOR


def test_many_voters_do_not_underflow():
    members = torch.stack([counts_of(4)] * 2000)
    chosen, scores = decide(members, voted(*[[1]] * 1100, *[[0]] * 900))
    assert chosen == [1]
    assert bool(scores.isfinite().all())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prior": [0.5, 0.5]}, r"aggregator\.prior: covers 2 classes: must cover the data's 3"),
        (
            {"benefit": [[1.0, 0], [0, 1.0]]},
            r"aggregator\.benefit: covers 2 classes: must cover the data's 3",
        ),
    ],
)
def test_a_prior_or_benefit_of_other_classes_is_refused(changes, message):
    with pytest.raises(FedstageError, match=message):
        fitted(torch.ones(1, C, C, dtype=torch.int64), **changes)
