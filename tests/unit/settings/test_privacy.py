import pytest

from fedstage.errors import FedstageError
from fedstage.settings.privacy import (
    expected_participants,
    private_steps,
    sampling_rate,
)
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


def is_refused(told, **changes):
    """Check that settings are refused in one line that has a text."""
    with pytest.raises(FedstageError) as fault:
        recipe(**changes)
    assert told in str(fault.value)
    assert "\n" not in str(fault.value)


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
    ("changes", "told"),
    [
        (
            {"aggregation": UNIFORM | {"secure": {"threshold": 3, "clip": 0.1, "most_samples": 9}}},
            "aggregation.secure: needs updates of which the server needs the sum alone, not "
            "privacy.client, by which the server clips each update",
        ),
        ({"aggregation": {}}, "aggregation.weights = 'samples': must be uniform with privacy"),
        ({"participation": "by_samples"}, "participation = 'by_samples': must be poisson or uni"),
        ({"participation": "in_turn"}, "participation = 'in_turn': must be poisson or uniform"),
        ({"model": BATCH}, "aggregation.batch_norm = 'average': must be re_estimate"),
        (
            {"model": BATCH, "aggregation": UNIFORM | {"batch_norm": "local"}},
            "aggregation.batch_norm = 'local': must be re_estimate",
        ),
        ({"aggregation": UNIFORM | {"rule": "median"}}, "needs aggregation.rule = average"),
        (
            {"aggregation": UNIFORM | {"stale": "changes"}},
            "aggregation.discount = 'constant', stale = 'changes': must be",
        ),
        ({"local": "scaffold"}, "not local = scaffold, whose control variates are sent, too"),
        ({"local": "fednova"}, "not local = fednova, which takes no plain average"),
        ({"local": "digest", "ensemble": "clients"}, "needs clients that exchange weights"),
        (
            STUDENT
            | {
                "global_models": 2,
                "server_model": True,
                "head_sharing": True,
                "global": "designated",
            }
            | {"model": {"cnn_small": {"head": {"hidden": 4, "width": 4}}}},
            "not head_sharing = true, which reaches all models in every round",
        ),
        (STUDENT | {"ensemble": "clients"}, "ensemble = 'clients': must be aggregated"),
        (STUDENT | {"ensemble": "bayesian"}, "ensemble = 'bayesian': must be aggregated"),
        (
            STUDENT | {"ensemble": "clients", "generator": "fedftg", "public": "generated"},
            "generator = fedftg: must be null with privacy",
        ),
        (
            STUDENT | {"public": "core", "core": {"samples": "all"}},
            "public = core: are clients' own training samples",
        ),
        (STUDENT | {"public": "digits"}, "public = digits: are clients' own training samples"),
        (
            {"start": "results/training/x/round_0001/group_0/aggregated.safetensors"},
            "start: must be null with privacy",
        ),
        ({"privacy": private(delta=0.05)}, "privacy.client.delta = 0.05: must be less than 1 / 20"),
        (
            {"clients": 1, "participants": 1, "privacy": {"client": {"clip": 1.0, "noise": 1.0}}},
            "privacy.client.delta = 1.0: must be less than 1 / 1",
        ),
        ({"privacy": private(clip=None)}, "clip = null: must be a number with noise = 1.0"),
        ({"privacy": private(noise=-1.0)}, "privacy.client.noise = -1.0"),
        ({"privacy": {}}, "privacy: give either client or example"),
        (
            {"privacy": private() | {"example": {"clip": 1.0, "noise": 1.0}}},
            "privacy: give either client or example",
        ),
        (
            {"participation": "poisson", "global_models": 2},
            "global_models = 2: a single group that clients train with participation = poisson",
        ),
        (
            {"participation": "poisson", "staleness": {"cyclic": {"delays": [0, 1]}}},
            "staleness = 'cyclic': must be none with participation = poisson",
        ),
    ],
    ids=str,
)
def test_what_makes_the_guarantee_false_is_refused_in_a_line_that_says_why(changes, told):
    is_refused(told, **changes)


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
HEADED = {"cnn_small": {"head": {"hidden": 4, "width": 4}}}


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
    ("changes", "told"),
    [
        ({"model": BATCH}, "model = cnn_small: must have norm = group or none with"),
        (
            {"data": "sent140", "model": {"lstm": {"vocabulary": 30522}}},
            "model = lstm: has no gradients of single samples",
        ),
        ({"local": "fedlc"}, "local = fedlc: must minimise client.loss with privacy.example"),
        ({"local": "moon", "model": HEADED}, "local = moon: must minimise client.loss"),
        (
            STUDENT | {"ensemble": "odds", "model": "cnn_small"},
            "clients that send nothing but what comes of gradients with noise, not ensemble = odds",
        ),
        (
            STUDENT | {"ensemble": "clients", "generator": "fedftg", "public": "generated"},
            "generator = fedftg: must be null with privacy",
        ),
        (STUDENT | {"public": "digits"}, "public = digits: are clients' own training samples"),
        (client(last_batch="keep"), "client.last_batch = 'keep': must be merge_single with"),
        (
            client(batches="continued", epochs=None, steps=1) | {"participants": 20},
            "client.batches = 'continued': must be anew with privacy.example",
        ),
        ({"numerics": {"compile": True}}, "numerics.compile = true: needs losses with compiled"),
        (
            {"numerics": {"memory_format": "channels_last"}},
            "numerics.memory_format = channels_last: must be contiguous",
        ),
        (
            {"start": "results/training/x/round_0001/group_0/aggregated.safetensors"},
            "start: must be null with privacy",
        ),
        ({"privacy": {"example": {"clip": None, "noise": 1.0}}}, "clip = null: must be a number"),
    ],
    ids=str,
)
def test_what_no_noise_in_gradients_hides_is_refused(changes, told):
    is_refused(told, **EXAMPLE | changes)


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
    assert sampling_rate(settings, samples) == rate
    assert private_steps(settings, samples) == steps
