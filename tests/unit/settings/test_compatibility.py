"""What does not go together: each line of the table refuses settings, and has real conditions."""

import re
from typing import get_args

import pytest

from fedstage.errors import FedstageError
from fedstage.settings.base import Choice
from fedstage.settings.compatibility import CLASHES, DERIVED, clashes, holding
from fedstage.settings.local_training import Scaffold
from fedstage.settings.merging import merge
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import Recipe
from fedstage.settings.validation import kinds_at, validate

STEPS = {"steps": 2, "batch_size": 8, "learning_rate": 0.1}
BASE = {
    "data": {"digits": {"server_validation": 9}},
    "clients": 10,
    "partition": "iid",
    "validation": 0.1,
    "model": "cnn_small",
    "client": STEPS,
    "server": STEPS,
    "seed": 0,
}
STUDENT = {"ensemble": "clients", "global": "basic"}
DIGEST = {"local": "digest", "ensemble": "clients"}
SERVERS = {"server_model": True, "global_models": 2}
HEADS = {**SERVERS, "head_sharing": True}
PRIVATE = {"weights": "uniform"}
CLIENTS = {"client": {"clip": 1.0, "noise": 1.0, "delta": 0.01}}
SECURE = {"secure": {"threshold": 3, "clip": 0.1, "most_samples": 9}}
FEDFTG = {**STUDENT, "generator": "fedftg", "public": "generated"}
DENSE = {"distillation": "kl", "generator": "coboosting", "public": "generated"}
EPOCHS = {**STEPS, "steps": None, "epochs": 2}
TABLE = {"data": "heart_disease", "model": "mlp", "partition": "natural", "clients": 4}

#: Settings that each line of the table refuses in rounds, and in one shot.
ROUNDS = {
    "clients that exchange weights": {**DIGEST, "aggregation": {"rule": "median"}},
    "rounds that go on from global models alone": {"local": "scaffold", "staleness": "never"},
    "updates of one model, sent as it is": {**HEADS, "personal": {"parts": "head"}},
    "averages of clients' matrices, and models in their updates": {
        **STUDENT, "model": {"cnn_small": {"trainable": {"lora": {"merged": True}}}},
    },
    "gradients without noise": {
        "local": "ditto", "privacy": {"example": {"clip": 1.0, "noise": 1.0}},
    },
    "client.optimiser = sgd": {"local": "fednova", "client": {"optimiser": "adam"}},
    "aggregation.server_optimizer = drift": {"local": "feddyn"},
    "client.momentum = 0": {"local": "scaffold", "client": {"momentum": 0.9}},
    "client.steps": {"client": {"epochs": 1, "steps": None, "batches": "continued"}},
    "client.momentum > 0": {"client": {"nesterov": True}},
    "server.momentum > 0": {**STUDENT, "server": {"nesterov": True}},
    "local.teacher = clients": {**DIGEST, "local": {"digest": {"teacher": "server", "cache": {}}}},
    "distillation = fedgems": {**DIGEST, "local": {"digest": {"teacher": "server"}}},
    "local = {digest: {teacher: server}}": {**STUDENT, "distillation": "fedgems"},
    "as many participants of a group in every round": {
        "local": "scaffold", "participation": "poisson",
    },
    "server_model = true": {"start_of": "server"},
    "aggregation.rule = average": {"local": "scaffold", "aggregation": {"rule": "median"}},
    "the plain average of clients' models": {
        **STUDENT, "local": "fednova", "server": {"drop_worst": "as_published"},
    },
    "aggregation.learning_rate = 1, as the server's optimiser has its own": {
        "aggregation": {"server_optimizer": "adam", "learning_rate": 0.5},
    },
    "global models that are the old ones with averaged changes": {**STUDENT, "compression": "stc"},
    "running statistics of global models": {
        "local": "fedgkd", "model": {"cnn_small": {"norm": "batch"}},
        "aggregation": {"batch_norm": "local"},
    },
    "updates of which the server needs the sum alone": {
        "aggregation": SECURE, "compression": "stc",
    },
    "changes of models that are all that clients send, as nothing else is clipped": {
        "local": "scaffold", "privacy": CLIENTS, "aggregation": PRIVATE,
    },
    "clients that send nothing but what comes of gradients with noise": {
        **STUDENT, "ensemble": "odds", "privacy": {"example": {"clip": 1.0, "noise": 1.0}},
    },
    "no label counts of clients": {**FEDFTG, "privacy": {"example": {"clip": 1.0, "noise": 1.0}}},
    "the server's settings": {**STUDENT, "server": None},
    "an ensemble that teaches": {"global": "basic"},
    "a server that learns from an ensemble": {**STUDENT, **SERVERS, "local": "gkt"},
    "ensemble = clients": {**DIGEST, "ensemble": "aggregated"},
    "ensemble = clients or aggregated, with uniform weights, of logits": {
        **FEDFTG, "ensemble": "bayesian",
    },
    "members of equal weights": {
        **STUDENT, "ensemble": {"clients": {"average": "median", "weights": "samples"}},
    },
    "logits of clients of all groups, which teach in rounds": {
        **STUDENT, "ensemble": "aggregated", "server": {"task_arithmetic": {}},
    },
    "members that compute logits of any images": {
        **STUDENT, "ensemble": "bayesian",
        "server": {"teacher_images": "augmented", "augmentation": "flip"},
    },
    "distillation = kl": {**FEDFTG, "distillation": "l1"},
    "server.steps": {**FEDFTG, "server": EPOCHS},
    "a student of the server, trained by itself": {**FEDFTG, "server": {"labels": 1.0}},
    "a student that is trained by itself": {**FEDFTG, "server": {"buffer": {}}},
    "client models that are fused in rounds": {**FEDFTG, "server": {"drop_worst": "as_published"}},
    "rounds of public images": {**FEDFTG, "server": {"samples_a_round": 9}},
    "public images": {**FEDFTG, "server": {"augmentation": "flip"}},
    "teachers in rounds that look at a student's public images": {
        **FEDFTG, "server": {"factor_transfer": {}},
    },
    "samples that are images": {**TABLE, "client": {"augmentation": "flip"}},
    "data.server_validation of at least 1 sample": {
        **STUDENT, "data": {"server_validation": 0}, "server": {"early_stopping": {}},
    },
    "public = core, whose samples are labelled": {**STUDENT, "distillation": "fedgems"},
    "labelled public samples, public = core or generated": {**STUDENT, "server": {"labels": 1.0}},
    "public = generated": {**FEDFTG, "public": "held_out"},
    "public images that are there before students learn": {**DIGEST, "public": "generated"},
    "training steps that can be recorded": {
        **FEDFTG, "numerics": {"cuda_graphs": True, "device": "cuda"},
    },
}  # fmt: skip
ONE_SHOT = {
    "no clients' samples but through gradients with noise": {
        "privacy": {"example": {"clip": 1.0, "noise": 1.0}}, "aggregator": "voting",
    },
    "client.loss = cross_entropy": {"unknown": {}, "client": {"loss": "focal"}},
    "clients that train models of classes": {"prototypes": {}, "distillation": "closed_form"},
    "outputs of models that nothing else takes": {"prototypes": {}, "unknown": {}},
    "models that are trained as a whole": {
        "quantisation": "int8", "model": {"cnn_small": {"trainable": "head"}},
    },
    "models with the outputs of what they start from": {
        "unknown": {}, "start": "results/training/a/round_0001/group_0/aggregated.safetensors",
    },
    "an ensemble that predicts with clients' models": {
        **DENSE, "server": EPOCHS, "members": {"random": {"count": 3}},
    },
    "server.epochs": DENSE,
    "samples that are features": {
        "distillation": "labels", "generator": "mixture", "public": "generated",
    },
    "rounds": {"distillation": "kl", "server": {"buffer": {"after": 2}}},
    "a generator that the server trains, dense or coboosting": {
        "distillation": "cotrained", "generator": "cvae", "public": "generated",
    },
}  # fmt: skip


def told(kind, changes):
    raw = merge(BASE | ({"participants": 4} if kind is Recipe else {}), changes)
    recipe = kind.model_validate(raw, context="restricted")  # without its checks
    return list(clashes(recipe._completed()._read())), raw


@pytest.mark.parametrize(
    ("kind", "needed", "changes"),
    [
        *((Recipe, *case) for case in ROUNDS.items()),
        *((OneShotRecipe, *case) for case in ONE_SHOT.items()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_one_setting_needs_and_another_lacks_is_refused_with_both(kind, needed, changes):
    lines, raw = told(kind, changes)
    assert [line for line in lines if f": needs {needed}, not " in line], lines
    with pytest.raises(FedstageError):
        validate(kind, raw, "here")


def test_each_line_of_the_table_is_tested_and_what_is_refused_here_is_good_otherwise():
    assert sorted(needed for needed, _, _ in CLASHES) == sorted([*ROUNDS, *ONE_SHOT])
    for kind in (Recipe, OneShotRecipe):
        assert told(kind, {})[0] == []
    for good in (STUDENT, DIGEST, FEDFTG, {"local": "scaffold"}, {"compression": "stc"}):
        assert told(Recipe, good)[0] == []


CONDITIONS = sorted({one for _, *sides in CLASHES for side in sides for one in side})


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_is_of_a_setting_and_a_value_that_there_are(condition):
    path, _, values = condition.removeprefix("no ").replace("!", "").partition("=")
    *above, last = path.replace("global_trainer", "global").split(".")
    parts = [part for kind in (Recipe, OneShotRecipe) for part in found(kind, above)]
    having = [
        part for part in parts
        if last in {field.alias or name for name, field in part.model_fields.items()}
        or hasattr(part, last) or path in DERIVED
    ]  # fmt: skip
    assert having
    names = {name for part in parts for below in found(part, [last]) for name in named(below)}
    for value in filter(None, values.split("|")):
        assert (
            value in names
            or any(
                re.search(rf"\b{value}\b", f"{part.model_fields.get(last)} {vars(part).get(last)}")
                for kind in having
                for part in kind.__mro__[:-1]
                if hasattr(part, "model_fields")
            )
            or value in ("True", "server", "0.0")
        )


def found(kind, place):
    """Return the classes of settings at a place, in all of its alternatives."""
    kinds = [kind]
    for key in place:
        kinds = [below for one in kinds for below in kinds_at(one, [key])]
    return kinds


def named(kind):
    field = kind.model_fields.get("name")
    return get_args(field.annotation) if field else ()


def test_a_choice_counts_as_the_one_from_which_it_inherits():
    class Mine(Scaffold):
        name: str = "mine"

    class Run:
        local = Mine()

    assert issubclass(Mine, Choice)
    assert holding(Run, "local=scaffold|fednova") == "local = mine"
    assert holding(Run, "local!=scaffold") is None
    assert holding(Run, "local.keeps_state") == "local = mine"
    assert holding(Run, "no local.own_loss") == "local = mine"
    assert holding(Run, "no server") is None
