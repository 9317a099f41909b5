"""Cohorts: which participants train in one job."""

import pytest

from fedstage.experiments.targets import cohorts_of
from fedstage.plan.one_shot_sharing import alone
from fedstage.plan.participants import cohorts
from fedstage.plan.runs import Run
from fedstage.plan.training_folder import owners, training_id
from fedstage.settings.config_file import Execution
from fedstage.settings.groups import group_participants
from fedstage.settings.recipes import Recipe
from fedstage.settings.runs import RunLength

BASE = {
    "data": "digits", "clients": 8, "partition": "iid", "participants": 7, "model": "cnn_small",
    "client": {"epochs": 1, "batch_size": 8, "learning_rate": 0.1},
    "server": {"steps": 1, "batch_size": 8, "learning_rate": 0.1}, "seed": 0,
}  # fmt: skip


def recipe(**changes):
    return Recipe.model_validate(BASE | changes)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (1, [(0,), (1,), (2,), (3,)]),
        (3, [(0, 1, 2), (3,)]),
        (4, [(0, 1, 2, 3)]),
        (9, [(0, 1, 2, 3)]),
        (None, [(0, 1, 2, 3)]),
    ],
)
def test_the_participants_of_a_group_are_cut_in_their_order(size, expected):
    assert cohorts(recipe(global_models=2), 0, size) == expected


def test_every_participant_is_in_one_cohort():
    for group in range(3):
        found = [
            participant
            for cohort in cohorts(recipe(global_models=3), group, 2)
            for participant in cohort
        ]
        assert found == list(group_participants(recipe(global_models=3), group))


def test_recipes_with_the_same_cohort_share_its_rule():
    basic = recipe(ensemble="clients", **{"global": "basic"})
    two = recipe(global_models=2)
    runs = [Run({}, each, RunLength(rounds=1)) for each in (basic, two)]
    runs.append(Run({}, alone(two, 1, pooled=True), RunLength(rounds=1, training="pooled")))
    found = cohorts_of(runs, "all")
    assert found == {
        (0, tuple(range(7))): [training_id(basic), training_id(owners(basic)[1])],
        (0, (0, 1, 2, 3)): [training_id(two)],
        (1, (4, 5, 6)): [training_id(two)],
    }


@pytest.mark.parametrize("granularity", ["round", "segment"])
def test_cohorts_are_for_jobs_of_participants(granularity):
    with pytest.raises(ValueError, match="clients_per_job = 2: only with granularity"):
        Execution(granularity=granularity, clients_per_job=2)
