"""Which clients' models an ensemble has."""

from itertools import pairwise

import pytest
import torch
from tests.shared.settings import one_shot

from fedstage.algorithm.one_shot.aggregator_training import Samples
from fedstage.algorithm.one_shot.selections import chosen_members
from fedstage.errors import FedstageError
from fedstage.settings.one_shot import OneShotRecipe

CLIENTS = 6
COUNTS = {0: {0: 5}, 1: {0: 9, 1: 3}, 2: {1: 4}, 3: {0: 12}, 4: {1: 1}}  # the last has none
#: Of each client's own four samples its model is right about so many; client 1 has none.
RIGHT = {0: 2, 2: 4, 3: 2, 4: 0, 5: 3}

INFO = {"classes": 2}


def recipe(**changes):
    return OneShotRecipe.model_validate(
        one_shot(clients=CLIENTS, validation=0.1)
        | changes
    )  # fmt: skip


def held_out(left=range(CLIENTS)):
    """Labels are 1; every other model than the client's own is right about all."""
    samples = {}
    for client in left:
        if client in RIGHT:
            logits = torch.tensor([-1.0, 1.0]).repeat(len(left), 4, 1)
            logits[list(left).index(client), RIGHT[client] :] *= -1
            samples[client] = Samples(logits, torch.ones(4, dtype=torch.int64))
    return samples


def chosen(members, **changes):
    own = recipe(members=members, **changes)
    left = held_out([i for i in range(6) if i not in own.forget])
    return chosen_members(own, COUNTS, left, INFO)


def test_the_best_are_those_with_the_highest_accuracy_on_their_own_samples():
    assert chosen({"best": {"count": 1}}) == [2]
    assert chosen({"best": {"count": 2}}) == [2, 5]
    assert chosen({"best": {"count": 3}}) == [0, 2, 5]  # of equals the first
    assert chosen({"best": {"count": 2}}, forget=[0, 2]) == [3, 5]


def test_who_has_no_samples_reports_nothing():
    assert chosen({"best": {"count": 6}}) == [0, 2, 3, 4, 5]


def test_the_largest_are_those_with_most_training_samples():
    assert chosen({"largest": {"count": 2}}) == [1, 3]
    assert chosen({"largest": {"count": 6}}) == [0, 1, 2, 3, 4]


def test_random_members_are_of_the_seed_and_more_of_them_contain_fewer():
    drawn = [chosen({"random": {"count": count}}) for count in range(1, 7)]
    assert [len(one) for one in drawn] == [1, 2, 3, 4, 5, 6]
    assert all(set(few) < set(more) for few, more in pairwise(drawn))
    assert chosen({"random": {"count": 3}}) == drawn[2]
    others = [tuple(chosen({"random": {"count": 3}}, seed=seed)) for seed in range(1, 9)]
    assert len(set(others)) > 3


@pytest.mark.parametrize("kind", ["best", "largest"])
def test_an_ensemble_of_nobody_is_refused_in_one_line(kind):
    own = recipe(members={kind: {"count": 2}})
    with pytest.raises(FedstageError, match=f"members = {kind}: no client has") as caught:
        chosen_members(own, {}, {}, INFO)
    assert "\n" not in str(caught.value)
