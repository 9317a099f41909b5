import pytest

from fedstage.protocol.groups import expected_participants
from fedstage.protocol.privacy import private_steps, sampling_rate
from fedstage.settings.recipes import Recipe
from fedstage.settings.validation import validate

RECIPE = {
    "data": "digits",
    "clients": 20,
    "partition": "iid",
    "participants": 4,
    "model": "logistic_regression",
    "aggregation": {"weights": "uniform"},
    "privacy": {"client": {"clip": 0.5, "noise": 1.0, "delta": 0.01}},
    "client": {"epochs": 1, "batch_size": 8, "learning_rate": 0.1},
    "server": {"steps": 1, "batch_size": 8, "learning_rate": 0.1},
    "seed": 0,
}
STUDENT = {"global": "basic", "ensemble": "aggregated"}
BATCH = {"cnn_small": {"norm": "batch"}}
UNIFORM = {"weights": "uniform"}


def recipe(**changes):
    return validate(Recipe, RECIPE | changes, "recipe")


def private(**changes):
    return {"client": {"clip": 0.5, "noise": 1.0, "delta": 0.01} | changes}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"participation": "poisson"},
        {"local": "fedprox"},
        {"local": "moon", "model": {"cnn_small": {"head": {"hidden": 4, "width": 4}}}},
        {"aggregation": UNIFORM | {"server_optimizer": "adam"}},
        {"model": BATCH, "aggregation": UNIFORM | {"batch_norm": "re_estimate"}},
        STUDENT,  # of public samples: post-processing
        STUDENT | {"global_models": 2, "ensemble": {"aggregated": {"checkpoints": 2}}},
        {"ensemble": "clients"},  # which teaches nobody
        {"compression": "stc"},
        {"privacy": private(clip=None, noise=0.0)},
    ],
    ids=str,
)
def test_what_keeps_the_guarantee_is_allowed(changes):
    assert recipe(**changes).privacy is not None


@pytest.mark.parametrize(
    ("changes", "numbers"),
    [
        ({}, [4.0]),
        ({"participation": "poisson"}, [4.0]),
        ({"global_models": 3}, [2.0, 1.0, 1.0]),
        ({"global_models": 2, "client_groups": "drawn"}, [2.0, 2.0]),
    ],
)
def test_a_sum_is_divided_by_the_expected_number_of_participants(changes, numbers):
    found = recipe(**changes)
    groups = range(found.global_models)
    assert [expected_participants(found, group) for group in groups] == numbers


# --- samples --------------------------------------------------------------------------------------

EXAMPLE = {"privacy": {"example": {"clip": 0.5, "noise": 1.0}}, "aggregation": {}}


def client(**changes):
    return {"client": RECIPE["client"] | changes}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"local": "fedprox"},
        {"local": "fednova", "aggregation": {"rule": "average"}},
        {"local": "scaffold"},
        {"aggregation": {"rule": "median"}},
        {"aggregation": {"secure": {"threshold": 3, "clip": 0.1, "most_samples": 200}}},
        {"participation": "by_samples"},
        {"model": {"cnn_small": {"norm": "group"}}},
        {"compression": "stc"},
        client(clip_norm=1.0, momentum=0.9, weight_decay=0.1),
        client(epochs=None, steps=3, optimiser="adam"),
        STUDENT,
        STUDENT | {"ensemble": "clients"},
        {"privacy": {"example": {"clip": None, "noise": 0.0}}},
    ],
    ids=str,
)
def test_what_comes_of_noisy_gradients_is_allowed(changes):
    assert recipe(**EXAMPLE | changes).privacy is not None


@pytest.mark.parametrize(
    ("changes", "samples", "rate", "steps"),
    [
        ({}, 20, 0.4, 3),
        ({}, 5, 1.0, 1),
        ({"epochs": 2}, 16, 0.5, 4),
        ({"epochs": None, "steps": 7}, 16, 0.5, 7),
    ],
)
def test_batches_of_samples_at_random_have_the_size_and_number_of_epochs(
    changes, samples, rate, steps
):
    settings = recipe(**client(**changes)).client
    assert sampling_rate(settings.batch_size, samples) == rate
    assert private_steps(settings, samples) == steps
