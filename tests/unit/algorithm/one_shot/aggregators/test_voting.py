"""Polychotomous voting: what a client's votes say about the truth."""

import math

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


def test_counts_of_clients_add_up_to_those_of_all_samples():
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(4, 50, C, generator=generator)
    labels = torch.randint(C, (50,), generator=generator)
    parts = [count_votes(logits[:, own], labels[own]) for own in torch.arange(50).split([7, 40, 3])]
    assert torch.equal(sum(parts), count_votes(logits, labels))


# --- decisions ------------------------------------------------------------------------------------


def test_perfect_voters_reproduce_the_truth():
    perfect = torch.stack([torch.eye(C, dtype=torch.int64) * 9] * 4)
    truth = [0, 2, 1, 1]
    for estimate in ("smoothed", "as_published", "as_released"):
        assert decide(perfect, voted(*[truth] * 4), estimate=estimate)[0] == truth


def test_a_voter_that_knows_nothing_changes_nothing():
    useful, useless = counts_of(8), torch.full((C, C), 4)
    rows = [[0, 1, 2], [2, 2, 0]]
    both, scores = decide(torch.stack([useful, useless]), voted(*rows))
    alone, expected = decide(useful[None], voted(rows[0]))
    assert both == alone
    assert torch.allclose(scores, expected, atol=1e-5)


def test_the_order_of_voters_does_not_matter():
    members = torch.stack([counts_of(8), counts_of(4), counts_of(6)])
    rows = [[0, 1, 2, 2], [1, 1, 0, 2], [2, 0, 0, 1]]
    order = [2, 0, 1]
    one = decide(members, voted(*rows))[1]
    other = decide(members[order], voted(*[rows[i] for i in order]))[1]
    assert torch.allclose(one, other, atol=1e-5)


def test_two_classes_are_the_majority_weighted_by_log_odds():
    rights = (9, 6, 6)
    members = torch.stack([counts_of(right, classes=2) for right in rights])
    rows = [[0, 1, 0, 1], [1, 1, 0, 0], [1, 0, 1, 0]]
    weights = [math.log(right / (10 - right)) for right in rights]
    margin = [
        sum(w * (1 if row[n] == 0 else -1) for w, row in zip(weights, rows, strict=True))
        for n in range(4)
    ]
    chosen, scores = decide(members, voted(*rows, classes=2), estimate="as_published")
    assert chosen == [0 if m > 0 else 1 for m in margin]
    assert (scores[:, 0] - scores[:, 1]).tolist() == pytest.approx(margin, abs=1e-5)


def test_a_good_voter_overrules_two_bad_ones():
    members = torch.stack([counts_of(28, 30), counts_of(12, 30), counts_of(12, 30)])
    assert decide(members, voted([0], [1], [1]))[0] == [0]


def test_prior_and_benefit_may_change_the_decision():
    members = counts_of(6)[None]
    logits = voted([0])
    assert decide(members, logits)[0] == [0]
    assert decide(members, logits, prior=[0.1, 0.1, 0.8])[0] == [2]
    dear = [[1.0, 0, 0], [0, 1.0, 0], [0, 0, 9.0]]
    assert decide(members, logits, benefit=dear)[0] == [2]
    identity = [[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]]
    one, other = (decide(members, logits, benefit=b)[1] for b in (None, identity))
    assert torch.allclose(one, other, atol=1e-6)


def test_a_decision_that_is_never_right_may_have_the_highest_benefit():
    """A class that is nobody's truth, chosen because it is half right for all others."""
    hedge = [[1.0, 0, 0], [0, 1.0, 0], [0.9, 0.9, 0]]
    assert decide(torch.full((1, C, C), 5), voted([0]), benefit=hedge)[0] == [2]


def test_the_counted_prior_is_the_share_of_each_class():
    votes = torch.tensor([[[6, 1, 0], [0, 1, 0], [0, 0, 2]]])
    found = fitted(votes, prior="counted")["log_prior"].exp()
    assert torch.allclose(found, torch.tensor([0.6, 0.2, 0.2]))


# --- votes that were never counted ----------------------------------------------------------------

#: Class 2 has no samples; nobody ever voted for it. Member 0 is always right.
UNSEEN = torch.tensor([[[5, 0, 0], [0, 5, 0], [0, 0, 0]], [[4, 1, 0], [1, 4, 0], [0, 0, 0]]])


def competency(estimate, smoothing=1.0):
    return fitted(UNSEEN, estimate=estimate, smoothing=smoothing)["log_competency"].exp()


def test_smoothed_counts_are_one_more_of_each():
    found = competency("smoothed")
    assert torch.allclose(found[0, :, 0], torch.tensor([6 / 8, 1 / 8, 1 / 8]))
    assert torch.allclose(found[:, :, 2], torch.full((2, C), 1 / 3))
    assert torch.allclose(competency("smoothed", 0.5)[0, :, 0], torch.tensor([5.5, 0.5, 0.5]) / 6.5)


def test_published_counts_keep_zeros_and_know_nothing_of_a_class_without_samples():
    found = competency("as_published")
    assert found[0, :, 0].tolist() == [1.0, 0.0, 0.0]
    assert torch.allclose(found[:, :, 2], torch.full((2, C), 1 / 3))


def test_released_counts_exclude_votes_for_a_class_without_samples():
    found = competency("as_released")
    assert found[0, :, 0].tolist() == [1.0, 0.0, 0.0]
    assert torch.allclose(found[:, :, 2], torch.tensor([0.5, 0.5, 0.0]).expand(2, C))


@pytest.mark.parametrize("estimate", ["smoothed", "as_published", "as_released"])
def test_probabilities_of_votes_sum_to_one(estimate):
    assert torch.allclose(competency(estimate).sum(1), torch.ones(2, C))


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
