"""Participants where clients are bound to architectures."""

from collections import Counter
from itertools import permutations, product
from math import factorial, prod

import numpy as np
import pytest

from fedstage.data.bound_participation import draw_bound, ways
from fedstage.data.participation import participants_of, table
from fedstage.errors import FedstageError
from fedstage.settings.participants import Binding, unbound_needed

#: The architecture of each participant, and of each client.
BINDINGS = {
    "nobody is left over": ((0, 0, 1), (0, 0, 1)),
    "two architectures": ((0, 0, 1), (0, None, None, 1, 0)),
    "one has no clients of its own": ((0, 1, 1), (0, 0, None, None, None)),
    "participants of one are not together": ((0, 1, 0), (1, 0, None, None)),
    "nobody is bound to those that are asked for": ((1,), (0, None, None)),
    "three architectures": ((0, 1, 2, 2), (0, 0, 1, 2, None, None)),
}


def binding(participants, clients):
    return Binding(participants=participants, clients=clients)


def assignments(participants, clients):
    """List every way to give each participant another client that may have it, by trying all."""
    return [
        chosen
        for chosen in permutations(range(len(clients)), len(participants))
        if all(
            clients[who] in (None, participant)
            for who, participant in zip(chosen, participants, strict=True)
        )
    ]


def demands_of(participants, clients):
    participants, clients = Counter(participants), Counter(clients)
    return tuple(
        (participants[number], clients[number]) for number in sorted(participants)
    ), clients[None]


@pytest.mark.parametrize(("participants", "clients"), BINDINGS.values(), ids=BINDINGS)
def test_every_assignment_is_as_likely(participants, clients):
    every = assignments(participants, clients)
    rounds = 150 * len(every)
    rule = binding(participants, clients)
    drawn = Counter(tuple(draw_bound(rule, 0, t).tolist()) for t in range(1, rounds + 1))
    assert drawn.keys() == set(every)
    error = np.sqrt(150 * (1 - 1 / len(every)))
    assert max(abs(count - 150) for count in drawn.values()) <= 5 * error


@pytest.mark.parametrize(("participants", "clients"), BINDINGS.values(), ids=BINDINGS)
def test_ways_are_those_that_there_are(participants, clients):
    orders = prod(factorial(count) for count in Counter(participants).values())
    assert ways(*demands_of(participants, clients)) * orders == len(
        assignments(participants, clients)
    )


def test_there_is_a_way_exactly_where_enough_clients_are_unbound():
    for first, second, own, others, unbound in product(range(4), repeat=5):
        participants, bound = {"a": first, "b": second}, {"a": own, "b": others}
        enough = unbound_needed(participants, bound) <= unbound
        assert bool(ways(((first, own), (second, others)), unbound)) == enough


def test_where_nobody_is_left_unbound_all_of_an_architecture_are_alike():
    rule = binding((0, 0, 1, 1, 1), (0,) * 4 + (1,) * 6)
    chosen = np.stack([draw_bound(rule, 3, t) for t in range(1, 2001)])
    for participant, members in ((0, range(4)), (1, range(4)), (4, range(4, 10))):
        counts = np.bincount(chosen[:, participant], minlength=10)
        expected = 2000 / len(members)
        assert counts[[who for who in range(10) if who not in members]].sum() == 0
        assert np.abs(counts[members] - expected).max() < 5 * np.sqrt(expected)


def test_many_clients_of_many_architectures():
    clients = tuple([0] * 300 + [1] * 500 + [2] * 10 + [None] * 400)
    participants = tuple([0] * 40 + [2] * 30 + [1] * 50)
    rule = binding(participants, clients)
    for round_ in range(1, 20):
        chosen = draw_bound(rule, 0, round_)
        assert len(set(chosen.tolist())) == len(participants)
        for who, participant in zip(chosen, participants, strict=True):
            assert clients[who] in (None, participant)


def test_unbound_clients_are_drawn_as_often_as_the_law_says():
    # One participant each of two architectures with b clients of their own, and f unbound.
    own, unbound, rounds = 6, 3, 3000
    clients = (0,) * own + (1,) * own + (None,) * unbound
    every = own * own + 2 * own * unbound + unbound * (unbound - 1)
    expected = rounds * (2 * own + 2 * (unbound - 1)) / every
    chosen = np.stack([draw_bound(binding((0, 1), clients), 0, t) for t in range(1, rounds + 1)])
    counts = np.bincount(chosen.ravel(), minlength=len(clients))
    assert np.abs(counts[-unbound:] - expected).max() < 5 * np.sqrt(expected)
    assert counts[-unbound:].min() > counts[:-unbound].max()


def test_a_draw_depends_on_seed_and_round_only():
    rule = binding(*BINDINGS["three architectures"])
    rounds = [draw_bound(rule, 0, t).tolist() for t in range(1, 30)]
    assert rounds == [draw_bound(rule, 0, t).tolist() for t in range(1, 30)]
    assert rounds != [draw_bound(rule, 1, t).tolist() for t in range(1, 30)]
    assert len(set(map(tuple, rounds))) > 10


def test_too_few_clients_are_told():
    with pytest.raises(FedstageError, match="binding: 1 clients are bound to no architecture"):
        draw_bound(binding((0, 0, 1, 1), (0, 0, 0, None)), 0, 1)


def test_a_table_of_bound_clients():
    rule = binding(*BINDINGS["two architectures"])
    columns = table(5, 3, 7, 2, 4, rule)
    assert columns["client"].tolist() == [
        int(who) for t in (2, 3, 4) for who in draw_bound(rule, 7, t)
    ]
    assert table(5, 3, 7, 2, 4)["client"].tolist() != columns["client"].tolist()


@pytest.mark.parametrize(("clients", "participants"), [(6, 3), (5, 2)])
def test_a_binding_of_others_is_refused(clients, participants):
    rule = binding(*BINDINGS["two architectures"])
    told = f"of 3 participants and 5 clients: must be of participants = {participants}"
    with pytest.raises(FedstageError, match=told):
        participants_of(clients, participants, 0, 1, rule)
