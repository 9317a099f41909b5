"""Whose models participants start from, and who stays away."""

from itertools import product

from fedstage.plan.jobs import jobs_of
from fedstage.plan.participants import cohorts, delays
from fedstage.plan.staleness import base_round, first_active, is_idle, is_withdrawn
from fedstage.settings.recipes import Recipe

BASE = {
    "data": "digits", "clients": 6, "partition": "iid", "participants": 2, "model": "cnn_small",
    "client": {"epochs": 1, "batch_size": 8, "learning_rate": 0.1}, "seed": 0,
}  # fmt: skip
FEDDF = {"ensemble": "clients", "global": "basic",
         "server": {"steps": 2, "batch_size": 8, "learning_rate": 0.1}}  # fmt: skip
STRAGGLERS = {"cyclic": {"delays": [0, 1]}}
RANDOM = {"random": {"probabilities": [0.5, 0.3, 0.2]}}
ROUNDS = range(1, 7)


def recipe(staleness="none", **changes):
    return Recipe.model_validate(BASE | {"staleness": staleness} | changes)


def bases(staleness, rounds=ROUNDS, participant=0, **changes):
    return [base_round(recipe(staleness, **changes), round_, participant) for round_ in rounds]


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
    settings, rounds = recipe(RANDOM), range(3, 3003)
    late = [t - 1 - base_round(settings, t, participant) for t in rounds for participant in (0, 1)]
    shares = {delay: round(late.count(delay) / len(late), 1) for delay in set(late)}
    assert shares == {0: 0.5, 1: 0.3, 2: 0.2}
    # Participants, rounds and seeds have draws of their own; a method has none.
    assert bases(RANDOM, rounds) != bases(RANDOM, rounds, participant=1)
    assert bases(RANDOM, rounds) != bases(RANDOM, rounds, seed=1)
    assert bases(RANDOM, rounds) == bases(RANDOM, rounds, **FEDDF)


def test_where_groups_are_drawn_a_participant_has_the_delay_that_it_has_without():
    drawn = recipe(RANDOM, global_models=3, client_groups="drawn")
    for round_, participant, group in product(ROUNDS, range(2), range(3)):
        assert base_round(drawn, round_, 2 * group + participant) == base_round(
            recipe(RANDOM), round_, participant
        )


def test_who_is_late_may_stay_away():
    away, late = recipe(STRAGGLERS, withdraw_stale=True), recipe(STRAGGLERS)
    assert [is_withdrawn(away, round_, 1) for round_ in ROUNDS] == [False, True] * 3
    assert [is_idle(away, round_) for round_ in ROUNDS] == [False, True] * 3
    assert not any(is_withdrawn(late, round_, 1) or is_idle(late, round_) for round_ in ROUNDS)
    drawn = recipe(RANDOM, withdraw_stale=True)
    withdrawn = [
        [is_withdrawn(drawn, round_, participant) for participant in (0, 1)]
        for round_ in range(1, 40)
    ]
    assert [is_idle(drawn, round_) for round_ in range(1, 40)] == list(map(all, withdrawn))
    assert len({tuple(participants) for participants in withdrawn}) == 4
    assert [first_active(away, first) for first in (1, 2, 3)] == [1, 3, 3]
    assert first_active(late, 2) == 2
    assert first_active(recipe("never", withdraw_stale=True), 2) == 0
    distilled = jobs_of(recipe(STRAGGLERS, withdraw_stale=True, **FEDDF), 6)
    assert [job.round for job in distilled if job.stage == "distillation"] == [1, 3, 5]


def test_trainings_wait_for_their_base_round_only():
    for staleness, expected in (
        ("never", {}),
        (STRAGGLERS, {3: {2}, 4: {2}, 5: {4}, 6: {4}}),
        ("none", {round_: {round_ - 1} for round_ in range(2, 7)}),
    ):
        waits = {}
        for job, before in jobs_of(recipe(staleness, **FEDDF), 6).items():
            if job.stage == "local_training" and before:
                waits.setdefault(job.round, set()).update(one.round for one in before)
        assert waits == expected


def test_participants_that_may_be_late_train_in_jobs_of_their_own():
    assert cohorts(recipe(RANDOM), 0, None) == [(0,), (1,)]
    assert (
        cohorts(recipe(), 0, None)
        == cohorts(recipe({"cyclic": {"delays": [0]}}), 0, None)
        == [(0, 1)]
    )
    assert delays(recipe({"cyclic": {"delays": [0]}}, withdraw_stale=True)) is None
    assert delays(recipe(STRAGGLERS, withdraw_stale=True)).withdraw_stale
