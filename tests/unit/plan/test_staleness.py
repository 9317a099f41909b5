"""Whose models participants start from, which line owns what they make, and who stays away."""

import re
from itertools import product

import pytest

from fedstage.plan import data_files
from fedstage.plan.identity import participation_id
from fedstage.plan.jobs import jobs_of
from fedstage.plan.participants import cohorts, delays
from fedstage.plan.staleness import base_round, first_active, is_idle, is_withdrawn
from fedstage.plan.taught import first_distillation, is_distilled, was_taught
from fedstage.plan.teaching import LOGITS
from fedstage.plan.training import (
    AGGREGATION,
    LOCAL_TRAINING,
    aggregated_model,
    global_model,
    updates,
)
from fedstage.plan.training_folder import owners, training_id
from fedstage.settings.equivalences import simplest
from fedstage.settings.exchange import is_stale
from fedstage.settings.lines import Line

SERVER = {"steps": 2, "batch_size": 8, "learning_rate": 0.1}
BASE = {
    "data": "digits",
    "clients": 6,
    "partition": "iid",
    "participants": 2,
    "model": "cnn_small",
    "client": {"epochs": 1, "batch_size": 8, "learning_rate": 0.1},
    "seed": 0,
}
FEDDF = {"ensemble": "clients", "global": "basic", "server": SERVER}
FEDSDD = {
    "ensemble": {"aggregated": {"checkpoints": 2}}, "global": "designated", "server": SERVER,
    "global_models": 2,
}  # fmt: skip
STRAGGLERS = {"cyclic": {"delays": [0, 1]}}
RANDOM = {"random": {"probabilities": [0.5, 0.3, 0.2]}}
ROUNDS = range(1, 7)


def line(staleness="none", **changes):
    return Line.model_validate(BASE | {"staleness": staleness} | changes)


def bases(staleness, rounds=ROUNDS, slot=0, **changes):
    return [base_round(line(staleness, **changes), t, slot) for t in rounds]


# --- base rounds ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("staleness", "expected"),
    [
        ("none", [0, 1, 2, 3, 4, 5]),
        ("never", [0, 0, 0, 0, 0, 0]),
        (STRAGGLERS, [0, 0, 2, 2, 4, 4]),  # whoever trains in an even round is a round late
        ({"cyclic": {"delays": [2]}}, [0, 0, 0, 1, 2, 3]),
        ({"cyclic": {"delays": [1, 0, 9]}}, [0, 1, 0, 2, 4, 0]),
        ({"random": {"probabilities": [0.0, 1.0]}}, [0, 0, 1, 2, 3, 4]),
        ({"random": {"probabilities": [1.0, 0.0]}}, [0, 1, 2, 3, 4, 5]),
    ],
    ids=str,
)
def test_base_rounds_by_hand(staleness, expected):
    assert bases(staleness) == expected
    assert bases(staleness, slot=1) == expected


def test_random_delays_are_drawn_with_their_probabilities_and_never_in_the_future():
    settings, rounds = line(RANDOM), range(3, 3003)
    late = [t - 1 - base_round(settings, t, slot) for t in rounds for slot in (0, 1)]
    assert {delay: round(late.count(delay) / len(late), 1) for delay in set(late)} == {
        0: 0.5, 1: 0.3, 2: 0.2,
    }  # fmt: skip
    # Slots, rounds and seeds have draws of their own; a method has none.
    assert bases(RANDOM, rounds) != bases(RANDOM, rounds, slot=1)
    assert bases(RANDOM, rounds) != bases(RANDOM, rounds, seed=1)
    assert bases(RANDOM, rounds) == bases(RANDOM, rounds, **FEDDF)


def test_where_groups_are_drawn_a_participant_has_the_delay_that_it_has_without():
    drawn = line(RANDOM, global_models=3, client_groups="drawn")
    for round, slot, group in product(ROUNDS, range(2), range(3)):
        assert base_round(drawn, round, 2 * group + slot) == base_round(line(RANDOM), round, slot)


# --- plans that are the same ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "staleness",
    ["none", {"cyclic": {"delays": [0]}}, {"cyclic": {"delays": [0, 0]}},
     {"random": {"probabilities": [1.0]}}, {"random": {"probabilities": [1, 0, 0]}}],
    ids=str,
)  # fmt: skip
def test_a_plan_without_delay_is_the_synchronised_one(staleness):
    late = line(
        staleness, withdraw_stale=True, aggregation={"discount": "hinge", "stale": "changes"}
    )
    assert simplest(late) == line()
    assert training_id(late) == training_id(line())
    assert participation_id(late) == "2_of_6-seed0"
    assert delays(late) is None
    assert not is_stale(late)


@pytest.mark.parametrize(
    ("long", "short"),
    [
        ({"cyclic": {"delays": [0, 1, 0, 1]}}, STRAGGLERS),
        ({"cyclic": {"delays": [2, 2]}}, {"cyclic": {"delays": [2]}}),
        ({"random": {"probabilities": [0.5, 0.5, 0.0]}}, {"random": {"probabilities": [0.5, 0.5]}}),
    ],
    ids=str,
)
def test_a_staleness_has_one_form(long, short):
    assert simplest(line(long)) == line(short)
    assert bases(long, range(1, 40)) == bases(short, range(1, 40))


def test_fedbuff_of_all_participants_without_delay_is_fedavg_of_equal_shares():
    fedbuff = {"weights": "uniform", "discount": "polynomial", "stale": "changes"}
    everyone = {"participants": 6, "aggregation": fedbuff}
    plain = line(participants=6, aggregation={"weights": "uniform"})
    assert training_id(line(**everyone)) == training_id(plain)
    # Neither does the discount count where those who are late stay away.
    away = line(STRAGGLERS, withdraw_stale=True, **everyone)
    assert simplest(away).aggregation == plain.aggregation


def test_names_of_plans_say_who_is_late():
    names = {
        participation_id(line(staleness, **changes))
        for staleness, changes in [
            ("never", {}), (STRAGGLERS, {}), (STRAGGLERS, {"withdraw_stale": True}), (RANDOM, {}),
            ({"cyclic": {"delays": [0, 2]}}, {}), ("none", {"participation": "in_turn"}),
            ("never", {"participation": "in_turn"}),
        ]
    }  # fmt: skip
    assert len(names) == 7
    marks = sorted(re.sub("-[0-9a-f]{10}$", "", name) for name in names)
    assert marks == [
        "2_of_6-cyclic-seed0", "2_of_6-cyclic-seed0", "2_of_6-cyclic_withdrawn-seed0",
        "2_of_6-in_turn-never-seed0", "2_of_6-in_turn-seed0", "2_of_6-never-seed0",
        "2_of_6-random-seed0",
    ]  # fmt: skip


def test_methods_share_a_plan():
    plans = {participation_id(line(RANDOM, **method)) for method in ({}, FEDDF, FEDSDD)}
    assert len(plans) == 1


# --- who owns what --------------------------------------------------------------------------------


def nodes_read(line, node):
    """Name what a file of an unshared run is made from, by the definitions alone."""
    kind, t, k, *slot = node
    slots = range(k, k + 1) if line.global_models == 2 else range(2)
    if kind == "global":
        if t == 0:
            return []
        student = line.global_trainer is not None and k == 0 and t > line.global_trainer.warm_up
        idle = line.withdraw_stale and all(base_round(line, t, s) < t - 1 for s in range(2))
        return [("distilled" if student and not idle else "average", t, k)]
    if kind == "update":
        return [("global", base_round(line, t, *slot), k)]
    if kind == "logits":
        return [("update", t, k, slot) for slot in slots]
    if kind == "average":
        return [("global", t - 1, k), *(("update", t, k, slot) for slot in slots)]
    return [("average", t, k)]


def reached(line, node):
    parents = nodes_read(line, node)
    return any(parent[0] == "distilled" or reached(line, parent) for parent in parents)


@pytest.mark.parametrize("staleness", ["none", "never", STRAGGLERS, RANDOM], ids=str)
@pytest.mark.parametrize("withdraw", [False, True])
@pytest.mark.parametrize("method", [FEDDF, FEDSDD], ids=["feddf", "fedsdd"])
@pytest.mark.parametrize("warm_up", [0, 1])
def test_files_are_undistilled_exactly_where_no_distillation_is_an_ancestor(
    staleness, withdraw, method, warm_up
):
    trainer = {"global": {method["global"]: {"warm_up": warm_up}}}
    one = line(staleness, withdraw_stale=withdraw, **method | trainer)
    for t, k in product(ROUNDS, range(one.global_models)):
        slots = [k] if one.global_models == 2 else range(2)
        owners = {("average", t, k): AGGREGATION.job(one, t, k).config}
        owners |= {
            ("update", t, k, slot): LOCAL_TRAINING.job(one, t, k, slot).config for slot in slots
        }
        for node, found in owners.items():
            expected = simplest(one) if reached(one, node) else owners(one)[1]
            assert found == expected, node
        if not reached(one, ("logits", t, k)):
            assert LOGITS.job(one, t, k, "clients", "test").config == owners(one)[1]
        assert was_taught(one, t, k) == reached(one, ("global", t, k))


def test_who_is_never_synchronised_is_the_same_whatever_the_server_does():
    methods = [FEDDF, FEDDF | {"server": SERVER | {"temperature": 2.0}}, {}]
    lines = [line("never", **method) for method in methods]
    for round in ROUNDS:
        assert len({tuple(updates(one, round, 0)) for one in lines}) == 1
        said = {LOGITS(one, round, 0, "clients", "held_out") for one in lines}
        assert len(said) == 1
    averages = {aggregated_model(one, 2, 0) for one in lines}
    assert len(averages) == 3


def test_a_stragglers_second_round_starts_from_nothing_distilled():
    one = line(STRAGGLERS, **FEDDF)
    owned = [LOCAL_TRAINING.job(one, t, 0, 0).config == owners(one)[1] for t in ROUNDS]
    assert owned == [True, True, False, False, False, False]
    assert AGGREGATION.job(one, 2, 0).config == simplest(one)


def test_a_model_that_was_taught_stays_so_in_rounds_in_which_nobody_comes():
    """Round 2 is idle: w_2 is w*_1, which was distilled."""
    one = line(STRAGGLERS, withdraw_stale=True, **FEDDF)
    assert [is_idle(one, t) for t in ROUNDS] == [False, True, False, True, False, True]
    assert [is_distilled(one, t, 0) for t in ROUNDS] == [True, False, True, False, True, False]
    assert [AGGREGATION.job(one, t, 0).config == owners(one)[1] for t in (1, 2, 3)] == [
        True,
        False,
        False,
    ]
    assert global_model(one, 2, 0) == aggregated_model(one, 2, 0)


def test_a_servers_model_is_the_last_distilled_one():
    served = {"global_models": 2, "server_model": True, "global": "designated"}
    one = line(STRAGGLERS, withdraw_stale=True, **FEDDF | served)
    assert global_model(one, 2, 0) == global_model(one, 1, 0)
    assert aggregated_model(one, 3, 0) == global_model(one, 1, 0)
    assert "round_0003" in global_model(one, 3, 0)


@pytest.mark.parametrize(
    ("staleness", "first"),
    [
        (STRAGGLERS, 3), ({"cyclic": {"delays": [1, 1, 0]}}, 3), ({"cyclic": {"delays": [1]}}, 0),
        ("never", 0), ({"random": {"probabilities": [0.0, 1.0]}}, 0),
    ],
    ids=str,
)  # fmt: skip
def test_the_first_distillation_is_in_a_round_to_which_somebody_comes(staleness, first):
    late = {"global": {"basic": {"warm_up": 1}}}
    one = line(staleness, withdraw_stale=True, **FEDDF | late)
    assert first_distillation(one) == first
    assert first_distillation(line(staleness, **FEDDF | late)) == 2
    assert first_active(one, 1) == 1
    if not first:
        assert {AGGREGATION.job(one, t, 0).config for t in range(1, 40)} == {owners(one)[1]}


# --- edges and jobs -------------------------------------------------------------------------------


def test_participants_read_what_was_there_after_their_base_round():
    one = line(STRAGGLERS, **FEDDF)
    starts = [LOCAL_TRAINING.job(one, t, 0, 1).inputs["start"] for t in ROUNDS]
    assert starts == [global_model(one, base, 0) for base in (0, 0, 2, 2, 4, 4)]
    plan = LOCAL_TRAINING.job(one, 2, 0, 1).inputs["participation"]
    assert plan == data_files.participation_table(one, 2)


def test_changes_are_since_the_models_that_an_aggregation_reads():
    settings = {"participants": 3, "aggregation": {"stale": "changes"}}
    one = line(RANDOM, **settings)
    for round in ROUNDS:
        expected = [global_model(one, base_round(one, round, s), 0) for s in range(3)]
        assert AGGREGATION.job(one, round, 0).inputs["bases"] == expected
    assert AGGREGATION.job(line(RANDOM), 2, 0).inputs["bases"] == []
    assert AGGREGATION.job(line(**settings), 2, 0).inputs["bases"] == []


def trainings(one, rounds=6):
    return {job: before for job, before in jobs_of(one, rounds).items()
            if job.stage == "local_training"}  # fmt: skip


@pytest.mark.parametrize("method", [{}, FEDDF, FEDSDD], ids=["fedavg", "feddf", "fedsdd"])
def test_who_starts_from_round_0_waits_for_nobody(method):
    jobs = trainings(line("never", **method))
    assert len(jobs) == 6 * 2
    assert set(jobs.values()) == {()}


def test_stragglers_wait_for_the_round_before_the_last():
    waits = {job.round: [one.round for one in before]
             for job, before in trainings(line(STRAGGLERS, **FEDDF)).items()}  # fmt: skip
    assert waits == {1: [], 2: [], 3: [2], 4: [2], 5: [4], 6: [4]}


def test_where_those_who_are_late_stay_away_nothing_is_distilled():
    one = line(STRAGGLERS, withdraw_stale=True, **FEDDF)
    distilled = [job.round for job in jobs_of(one, 6) if job.stage == "distillation"]
    assert distilled == [1, 3, 5]
    assert [is_withdrawn(one, t, 1) for t in ROUNDS] == [False, True] * 3
    assert not any(is_withdrawn(line(STRAGGLERS), t, 1) for t in ROUNDS)


def test_participants_that_may_be_late_train_in_jobs_of_their_own():
    assert cohorts(line(RANDOM), 0, None) == [(0,), (1,)]
    assert cohorts(line(), 0, None) == [(0, 1)]
