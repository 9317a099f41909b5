import numpy as np

from fedstage.data.client_groups import by_group, draw_groups
from fedstage.data.participation import table


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
