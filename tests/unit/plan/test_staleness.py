"""Whose models participants start from, and who stays away."""

from itertools import product

from tests.shared import recipes
from tests.shared.recipes import FEDDF

from fedstage.plan.stages import jobs_of
from fedstage.protocol.rounds import base_round

STRAGGLERS = {"cyclic": {"delays": [0, 1]}}
RANDOM = {"random": {"probabilities": [0.5, 0.3, 0.2]}}
ROUNDS = range(1, 7)


def recipe(staleness="none", **changes):
    return recipes.recipe(**{"staleness": staleness, "participants": 2} | changes)


def bases(staleness, rounds=ROUNDS, participant=0, **changes):
    settings = recipe(staleness, **changes)
    return [base_round(settings, round_, participant) for round_ in rounds]


def test_base_rounds_by_hand():
    for staleness, expected in (
        ("none", [0, 1, 2, 3, 4, 5]),
        ("never", [0, 0, 0, 0, 0, 0]),
        (STRAGGLERS, [0, 0, 2, 2, 4, 4]),  # whoever trains in an even round is a round late
        ({"cyclic": {"delays": [2]}}, [0, 0, 0, 1, 2, 3]),
        ({"cyclic": {"delays": [1, 0, 9]}}, [0, 1, 0, 2, 4, 0]),
        ({"random": {"probabilities": [0.0, 1.0]}}, [0, 0, 1, 2, 3, 4]),
        ({"random": {"probabilities": [1.0, 0.0]}}, [0, 1, 2, 3, 4, 5]),
    ):
        assert bases(staleness) == bases(staleness, participant=1) == expected, staleness


def test_random_delays_are_drawn_with_their_probabilities_and_never_in_the_future():
    rounds = range(3, 1003)
    drawn = [bases(RANDOM, rounds, participant) for participant in (0, 1)]
    late = [t - 1 - base for found in drawn for t, base in zip(rounds, found, strict=True)]
    shares = {delay: round(late.count(delay) / len(late), 1) for delay in set(late)}
    assert shares == {0: 0.5, 1: 0.3, 2: 0.2}
    # Participants, rounds and seeds have draws of their own; a method has none.
    few = range(3, 43)
    assert drawn[0] != drawn[1]
    assert bases(RANDOM, few) not in (bases(RANDOM, few, seed=1), bases(RANDOM, few, 1))
    assert bases(RANDOM, few) == bases(RANDOM, few, **FEDDF)
    # Where groups are drawn, a participant has the delay that it has without.
    groups = {"global_models": 3, "client_groups": "drawn"}
    for participant, group in product(range(2), range(3)):
        found = bases(RANDOM, few, 2 * group + participant, **groups)
        assert found == bases(RANDOM, few, participant)


def test_trainings_wait_for_their_base_round_only():
    for staleness, expected in (
        ("never", {}),
        (STRAGGLERS, {3: {2}, 4: {2}, 5: {4}, 6: {4}}),
        ("none", {round_: {round_ - 1} for round_ in range(2, 7)}),
    ):
        waits = {}
        for job, before in jobs_of(recipe(staleness, **FEDDF), 6).items():
            if job.stage == "local_training" and before:
                waits.setdefault(job.round, set()).update(other.round for other in before)
        assert waits == expected
