"""Cohorts: which participants train in one job."""

from tests.shared import recipes

from fedstage.experiments.stage_rules import cohorts_of
from fedstage.plan.one_shot_sharing import alone
from fedstage.plan.rounds import cohorts
from fedstage.plan.runs import Run
from fedstage.plan.training_folder import owners, training_id
from fedstage.settings.runs import RunLength


def recipe(**changes):
    return recipes.recipe(participants=7, **changes)


def test_the_participants_of_a_group_are_cut_in_their_order():
    for models, group, size, expected in (
        (2, 0, 1, [(0,), (1,), (2,), (3,)]),
        (2, 0, 3, [(0, 1, 2), (3,)]),
        (2, 0, 4, [(0, 1, 2, 3)]),
        (2, 0, 9, [(0, 1, 2, 3)]),
        (2, 0, None, [(0, 1, 2, 3)]),
        (3, 0, 2, [(0, 1), (2,)]),
        (3, 1, 2, [(3, 4)]),
        (3, 2, 2, [(5, 6)]),
    ):
        assert cohorts(recipe(global_models=models), group, size) == expected


def test_recipes_with_the_same_cohort_share_its_rule():
    basic = recipe(ensemble="clients", **{"global": "basic"})
    two = recipe(global_models=2)
    runs = [Run({}, each, RunLength(rounds=1)) for each in (basic, two)]
    runs.append(Run({}, alone(two, 1, pooled=True), RunLength(rounds=1, training="pooled")))
    assert cohorts_of(runs, "all") == {
        (0, tuple(range(7))): [training_id(basic), training_id(owners(basic)[1])],
        (0, (0, 1, 2, 3)): [training_id(two)],
        (1, (4, 5, 6)): [training_id(two)],
    }
