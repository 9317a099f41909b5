import numpy as np
import pytest

from fedstage.data.participation import (
    SCHEMA,
    by_group,
    draw,
    draw_by_samples,
    draw_groups,
    draw_independently,
    in_turn,
    table,
)
from fedstage.errors import FedstageError
from fedstage.protocol.rounds import block_of


def test_clients_of_a_round_are_distinct():
    for round_ in range(1, 50):
        chosen = draw(20, 8, 0, round_)
        assert chosen.shape == (8,)
        assert len(set(chosen.tolist())) == 8
        assert chosen.min() >= 0
        assert chosen.max() < 20


def test_every_client_is_as_likely_in_every_participant():
    clients, participants, rounds = 6, 3, 6000
    chosen = np.stack([draw(clients, participants, 0, t) for t in range(1, rounds + 1)])
    expected = rounds / clients
    error = np.sqrt(rounds * (1 / clients) * (1 - 1 / clients))
    for participant in range(participants):
        counts = np.bincount(chosen[:, participant], minlength=clients)
        assert np.abs(counts - expected).max() < 5 * error


def test_pairs_of_participants_are_uniform():
    chosen = np.stack([draw(4, 2, 0, t) for t in range(1, 6001)])
    pairs = np.bincount(chosen[:, 0] * 4 + chosen[:, 1], minlength=16).reshape(4, 4)
    assert np.diag(pairs).tolist() == [0] * 4
    off = pairs[~np.eye(4, dtype=bool)]
    assert np.abs(off - 500).max() < 5 * np.sqrt(500)


def test_seeds_and_rounds_draw_differently_and_reproducibly():
    assert draw(50, 10, 1, 1).tolist() == draw(50, 10, 1, 1).tolist()
    assert draw(50, 10, 1, 1).tolist() != draw(50, 10, 2, 1).tolist()
    assert draw(50, 10, 1, 1).tolist() != draw(50, 10, 1, 2).tolist()


def test_fewer_participants_are_the_first_of_more():
    assert draw(50, 5, 3, 7).tolist() == draw(50, 20, 3, 7)[:5].tolist()


SAMPLES = np.array([10, 0, 30, 60, 100])


def test_the_first_participant_is_in_proportion_to_samples_and_so_is_the_rest_of_those_left():
    """The probability of (3, 4) is 60/200 of all, then 100/140 of the others."""
    rounds = 6000
    drawn = np.stack([draw_by_samples(SAMPLES, 2, 0, t) for t in range(1, rounds + 1)])
    first = np.bincount(drawn[:, 0], minlength=5) / rounds
    expected = SAMPLES / SAMPLES.sum()
    assert np.abs(first - expected).max() < 5 * np.sqrt(0.25 / rounds)
    assert first[1] == 0
    pairs = np.mean((drawn == (3, 4)).all(1))
    likely = 0.3 * 100 / 140
    assert abs(pairs - likely) < 5 * np.sqrt(likely * (1 - likely) / rounds)
    assert (drawn[:, 0] != drawn[:, 1]).all()


def test_clients_without_samples_cannot_take_part():
    with pytest.raises(FedstageError, match="participants = 5: only 4 clients have samples"):
        draw_by_samples(SAMPLES, 5, 0, 1)


def test_clients_in_turn_come_in_the_order_of_their_numbers():
    assert [in_turn(5, 2, t).tolist() for t in (1, 2, 3, 4)] == [[0, 1], [2, 3], [4, 0], [1, 2]]
    assert [in_turn(3, 1, t).tolist() for t in (1, 2, 3, 4)] == [[0], [1], [2], [0]]
    assert in_turn(4, 4, 7).tolist() == [0, 1, 2, 3]
    rows = table(5, 2, 0, 1, 4, turns=True)
    assert rows["client"].tolist() == [0, 1, 2, 3, 4, 0, 1, 2]


def test_table_lists_every_participant_of_every_round():
    columns = table(10, 3, 0, 4, 6)
    assert [*columns, "base_round"] == SCHEMA.names
    assert columns["round"].tolist() == [4] * 3 + [5] * 3 + [6] * 3
    assert columns["participant"].tolist() == [0, 1, 2] * 3
    assert columns["client"].tolist() == [int(c) for t in (4, 5, 6) for c in draw(10, 3, 0, t)]


@pytest.mark.parametrize(
    ("round_", "block"),
    [
        (1, (1, 100)),
        (2, (1, 100)),
        (99, (1, 100)),
        (100, (1, 100)),
        (101, (101, 200)),
        (200, (101, 200)),
        (201, (201, 300)),
        (12_345, (12_301, 12_400)),
    ],
)
def test_block_of_a_round(round_, block):
    assert block_of(round_) == block


def test_clients_that_take_part_by_themselves_are_independent():
    clients, expected, rounds = 5, 2, 6000
    drawn = [draw_independently(clients, expected, 0, t) for t in range(1, rounds + 1)]
    assert {len(one) for one in drawn} == {clients}
    present = np.array([[client in one for client in range(clients)] for one in drawn])
    assert np.abs(present.mean(0) - 0.4).max() < 0.03
    assert np.abs(np.corrcoef(present.T)[~np.eye(clients, dtype=bool)]).max() < 0.06
    assert {int(row.sum()) for row in present} == {0, 1, 2, 3, 4, 5}


# --- client groups --------------------------------------------------------------------------------


def drawn(clients=12, participants=4, groups=3, rounds=6, seed=0):
    plain = table(clients, participants, seed, 1, rounds)
    group_of = draw_groups(clients, groups, seed)
    return plain, group_of, by_group(plain, group_of, groups)


def test_every_group_is_as_likely():
    clients, groups = 30_000, 4
    counts = np.bincount(draw_groups(clients, groups, 0), minlength=groups)
    assert len(counts) == groups
    error = np.sqrt(clients * (1 / groups) * (1 - 1 / groups))
    assert np.abs(counts - clients / groups).max() < 5 * error


def test_clients_are_independent_of_one_another():
    """Groups are not balanced: how many clients one has is binomial, of variance n p (1 - p)."""
    clients, seeds = 12, 2000
    sizes = [draw_groups(clients, 3, seed).tolist().count(0) for seed in range(seeds)]
    variance = clients * (1 / 3) * (2 / 3)
    assert abs(np.mean(sizes) - clients / 3) < 5 * np.sqrt(variance / seeds)
    assert abs(np.var(sizes) - variance) < 5 * variance * np.sqrt(2 / seeds)


def test_a_participant_is_in_the_participant_of_its_group_and_nobody_in_the_others():
    participants = {
        "round": np.array([1, 1, 2, 2]), "participant": np.array([0, 1, 0, 1]),
        "client": np.array([3, 0, 2, 1]),
    }  # fmt: skip
    rows = by_group(participants, np.array([0, 1, 1, 1]), 2)
    assert rows["round"] == [1] * 4 + [2] * 4
    assert rows["participant"] == [0, 1, 2, 3] * 2
    # Group 0 has participants 0 and 1, group 1 has 2 and 3; nobody of round 2 is in group 0.
    assert rows["client"] == [None, 0, 3, None, None, None, 2, 1]


def test_every_participant_of_a_round_has_one_participant_and_its_own_group():
    plain, group_of, rows = drawn()
    for round_ in range(1, 7):
        there = [
            (participant, client)
            for at, participant, client in zip(
                rows["round"], rows["participant"], rows["client"], strict=True
            )
            if at == round_ and client is not None
        ]
        expected = plain["client"][plain["round"] == round_].tolist()
        assert sorted(client for _, client in there) == sorted(expected)
        assert all(participant // 4 == group_of[client] for participant, client in there)
        assert all(expected[participant % 4] == client for participant, client in there)
