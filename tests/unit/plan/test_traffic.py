"""Which files say what a run communicates, and what its predictor consists of."""

from collections import Counter

import pytest
from tests.shared import settings
from tests.shared.settings import SERVER

from fedstage.errors import FedstageError
from fedstage.experiments.grid import check_goal
from fedstage.plan import one_shot as shot
from fedstage.plan import unfederated
from fedstage.plan.one_shot_sharing import alone, local_recipe
from fedstage.plan.traffic import client_models, held_files, holds_one, read_files, traffic_files
from fedstage.plan.training import aggregated_model, participants_table
from fedstage.settings.one_shot import OneShot, OneShotRecipe
from fedstage.settings.recipes import Recipe
from fedstage.settings.runs import RunLength

SHARED = settings.one_shot(clients=6)
GROUPS = Recipe.model_validate(SHARED | {"participants": 5, "global_models": 2})


def one_shot(**changes):
    return OneShotRecipe.model_validate(SHARED | {"aggregator": "weighted"} | changes)


def held(evaluate, rounds=3):
    return Counter(held_files(GROUPS, RunLength(rounds=rounds, evaluate=evaluate)))


def test_a_federated_run_is_read_round_by_round_and_group_by_group():
    files = traffic_files(GROUPS, 3)
    assert files == [participants_table(GROUPS, t, k) for t in (1, 2, 3) for k in (0, 1)]
    assert client_models(GROUPS, RunLength(rounds=3)) == [
        aggregated_model(GROUPS, 3, k) for k in (0, 1)
    ]


def test_a_one_shot_run_is_read_from_the_table_of_its_aggregator():
    taught = one_shot(distillation="l1", server=SERVER)
    for recipe in (one_shot(), taught):
        assert traffic_files(recipe, 1) == [shot.aggregator(one_shot(), output="rounds")]


@pytest.mark.parametrize(
    ("evaluate", "of_group", "rounds"),
    [
        ("clients", [3, 2], [3]),
        ({"aggregated": {"checkpoints": 2}}, [1, 1], [2, 3]),
        ({"bayesian": {"samples": 4}}, [1 + 3 + 4, 1 + 2 + 4], [3]),
    ],
    ids=str,
)
def test_an_ensemble_is_all_of_its_members(evaluate, of_group, rounds):
    expected = {
        aggregated_model(GROUPS, t, k): count for t in rounds for k, count in enumerate(of_group)
    }
    assert held(evaluate) == expected


SERVED = Recipe.model_validate(
    SHARED
    | {
        "participants": 5, "global_models": 3, "server_model": True, "client_groups": "drawn",
        "architectures": ["cnn_small", *["logistic_regression"] * 2], "ensemble": "clients",
        "global": "designated", "server": SERVER,
    }
)  # fmt: skip


def test_what_travels_is_of_the_groups_that_clients_train():
    """The server's model stays where it is: it has no participants, and no client's size."""
    files = traffic_files(SERVED, 2)
    assert files == [participants_table(SERVED, t, k) for t in (1, 2) for k in (1, 2)]
    models = client_models(SERVED, RunLength(rounds=2))
    assert models == [aggregated_model(SERVED, 2, k) for k in (1, 2)]
    assert not any("group_0" in path for path in [*files, *models])


def test_an_aggregator_is_held_with_the_models_of_those_who_are_not_forgotten():
    recipe, length = one_shot(forget=[2]), RunLength(rounds=1)
    models = unfederated.local_models(local_recipe(recipe))
    assert held_files(recipe, length) == [*models[:2], *models[3:], shot.aggregator(recipe)]
    assert client_models(recipe, length) == [*models[:2], *models[3:]]


def test_of_an_ensemble_in_int8_the_quantised_models_are_held():
    """They are what travels back; a client's own model travels as it was trained."""
    recipe, length = one_shot(forget=[2], quantisation="int8"), RunLength(rounds=1)
    models = unfederated.models_in_precision(local_recipe(recipe))
    assert held_files(recipe, length) == [*models[:2], *models[3:], shot.aggregator(recipe)]
    trained = unfederated.local_models(local_recipe(recipe))
    assert client_models(recipe, length) == [*trained[:2], *trained[3:]]


def test_of_clients_alone_each_holds_its_own():
    recipe = alone(GROUPS, 3, pooled=False)
    assert held_files(recipe, RunLength(rounds=3)) == unfederated.local_models(recipe)
    length = RunLength(rounds=3)
    assert (holds_one(recipe, length), holds_one(GROUPS, length)) == (True, False)
    assert holds_one(GROUPS, RunLength(rounds=3, evaluate="each_client"))
    assert not holds_one(GROUPS, RunLength(rounds=3, evaluate="clients"))
    assert traffic_files(recipe, 3) == []


@pytest.mark.parametrize("precision", ["none", "int8"])
def test_of_one_client_that_is_scored_no_other_model_is_read(precision):
    own = OneShot.model_validate({"aggregator_fraction": 0.1, "quantisation": precision})
    recipe = alone(GROUPS, 1, pooled=False, own=own)
    length = RunLength(rounds=1, evaluate_client=2)
    trained, asked = (
        unfederated.local_models(recipe)[2],
        unfederated.models_in_precision(recipe)[2],
    )
    assert held_files(recipe, length) == [asked]
    assert client_models(recipe, length) == [trained]
    assert read_files(recipe, length) == list(dict.fromkeys([trained, asked]))


# --- which fixed accuracy a run is to reach -------------------------------------------------------


POINTS = [
    {"method": method, "data": data, "partition.alpha": 0.1, "seed": 0}
    for method in ("fedavg", "fedet")
    for data in ("cifar10 train_size 5000", "cifar100")
]


@pytest.mark.parametrize(
    ("reach", "told"),
    [
        ({"data": {"cifar10": 70}}, "reach.data: 'cifar100': missing; there are cifar10"),
        (
            {"data": {"cifar10": 70, "cifar100": 30, "svhn": 80}},
            "reach: data = 'svhn': no cell of e; use one of",
        ),
        ({"seed": {0: 70}}, "reach: seed: no axis of e; use one of method"),
        ({"method": {"fedavg": 70}}, "reach.method: 'fedet': missing; there are fedavg"),
    ],
    ids=str,
)
def test_each_cell_has_a_goal_and_each_goal_a_cell(reach, told):
    with pytest.raises(FedstageError, match=f"^e: communication.{told}"):
        check_goal("e", reach, POINTS)
