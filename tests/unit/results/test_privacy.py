from math import inf

import pytest

from fedstage.results.accounting import fixed_size_epsilon, poisson_epsilon
from fedstage.results.privacy import client_epsilon, guarantee
from fedstage.results.runs_file import ExperimentRun
from fedstage.settings.privacy import delta_of
from fedstage.settings.recipes import Recipe

RECIPE = {
    "data": "digits",
    "clients": 20,
    "partition": "iid",
    "participants": 4,
    "model": "logistic_regression",
    "aggregation": {"weights": "uniform"},
    "client": {"epochs": 1, "batch_size": 8, "learning_rate": 0.1},
    "seed": 0,
}


def epsilon(rounds=3, clip=0.5, noise=2.0, **changes):
    private = {"client": {"clip": clip, "noise": noise, "delta": 0.01}}
    recipe = RECIPE | {"privacy": private} | changes
    parts = [{"length": {"rounds": rounds}, "federated": recipe}]
    run = {"settings": {}, "metrics": "m", "partition": "p", "candidates": [{"parts": parts}]}
    found = guarantee(ExperimentRun.model_validate(run))
    assert found.get("delta", 0.01) == 0.01
    return found.get("epsilon")


def test_epsilon_is_of_all_rounds_and_of_how_clients_are_drawn():
    assert epsilon() == fixed_size_epsilon(2.0, 4, 20, 3, 0.01)
    assert epsilon(participation="poisson") == poisson_epsilon(2.0, 0.2, 3, 0.01)
    assert epsilon(participants=20) == poisson_epsilon(2.0, 1.0, 3, 0.01)
    assert epsilon(participation="poisson") < epsilon(5, participation="poisson") < epsilon(5)


def test_groups_share_the_guarantee():
    assert epsilon(global_models=2) == epsilon()


@pytest.mark.parametrize("how", [{"noise": 0.0}, {"noise": 0.0, "clip": None}])
def test_without_noise_it_is_infinite(how):
    assert epsilon(**how) == inf


def test_without_privacy_there_is_none():
    assert epsilon(privacy=None) is None


def test_a_delta_that_is_not_stated_follows_from_the_number_of_clients():
    private = {"client": {"clip": 0.5, "noise": 2.0}}
    recipe = Recipe.model_validate(RECIPE | {"privacy": private, "participation": "poisson"})
    assert delta_of(recipe.privacy.client, 20) == pytest.approx(20**-1.1)
    found = client_epsilon(recipe, recipe.privacy.client, 3)
    assert found == poisson_epsilon(2.0, 0.2, 3, 20**-1.1)
