import importlib.util
import typing
from importlib import import_module

import pytest
import torch
from pydantic import ValidationError
from tests.shared.settings import distilled

from fedstage.algorithm.exchange.updates import Update
from fedstage.algorithm.local_trainers import local_trainer
from fedstage.errors import FedstageError
from fedstage.protocol.groups import has_batch_norm
from fedstage.protocol.teaching import re_estimates
from fedstage.settings.aggregation import Krum, Median, ServerOptimiser, TrimmedMean
from fedstage.settings.aggregators import Aggregator, AggregatorTraining, Members
from fedstage.settings.base import (
    CHOICES,
    ByName,
    Settings,
    alternatives,
    expand_choice,
    subclasses,
)
from fedstage.settings.data import Data
from fedstage.settings.ensembles import EnsembleTrainer
from fedstage.settings.local_training import FedAvg, FedProx, LocalTrainer
from fedstage.settings.models import Model
from fedstage.settings.numerics import Numerics
from fedstage.settings.one_shot import OneShot, OneShotRecipe
from fedstage.settings.one_shot_clients import Outliers
from fedstage.settings.optimisation import Client, ClientLoss
from fedstage.settings.partitions import Partition
from fedstage.settings.recipes import LocalRecipe, Recipe
from fedstage.settings.runs import RunLength
from fedstage.settings.transfers import Transfer
from fedstage.settings.validation import validate

CLIENT = {"epochs": 1, "batch_size": 16, "learning_rate": 0.05}
SERVER = {"steps": 20, "batch_size": 16, "learning_rate": 0.01}
BASE = {
    "data": "digits",
    "clients": 10,
    "partition": "iid",
    "participants": 8,
    "model": "cnn_small",
    "client": CLIENT,
    "seed": 0,
}
DISTILLED = {"ensemble": "clients", "global": "basic", "server": SERVER}


def recipe(**changes):
    return Recipe.model_validate({**BASE, **changes})


MODULES = [
    f"fedstage.settings.{name}"
    for name in (
        "aggregation", "aggregators", "data", "ensembles", "recipes", "local_training", "models",
        "numerics", "one_shot", "optimisation", "partitions", "transfers",
        "one_shot_clients",
    )
]  # fmt: skip


def settings_classes():
    for name in MODULES:
        import_module(name)
    return list(dict.fromkeys(kind for kind in subclasses(Settings) if kind.__module__ in MODULES))


# --- what settings are ----------------------------------------------------------------------------


def test_settings_are_frozen_and_hashable():
    settings = recipe()
    with pytest.raises(ValidationError, match="frozen"):
        settings.seed = 1
    assert len({settings, recipe(), recipe(seed=1)}) == 2


@pytest.mark.parametrize("kind", settings_classes(), ids=lambda kind: kind.__name__)
def test_no_settings_accept_an_unknown_key(kind):
    with pytest.raises(ValidationError) as caught:
        kind.model_validate({"unheard_of": 1})
    faults = {fault["loc"]: fault["type"] for fault in caught.value.errors()}
    assert faults["unheard_of",] == "extra_forbidden"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("clients", "10"),
        ("clients", 10.0),
        ("clients", True),
        ("seed", "0"),
        ("validation", "0.1"),
        ("validation", False),
    ],
)
def test_types_are_not_guessed(field, value):
    with pytest.raises(ValidationError):
        recipe(**{field: value})


def test_whole_numbers_are_taken_where_real_ones_are_asked_for():
    value = recipe(validation=0).validation
    assert value == 0
    assert isinstance(value, float)


def test_numbers_are_finite():
    for value in (float("nan"), float("inf"), float("-inf")):
        with pytest.raises(ValidationError):
            FedProx.model_validate({"name": "fedprox", "mu": value})


# --- choices --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("fedavg", {"name": "fedavg"}),
        ({"fedavg": None}, {"name": "fedavg"}),
        ({"fedavg": {}}, {"name": "fedavg"}),
        ({"fedprox": {"mu": 0.1}}, {"name": "fedprox", "mu": 0.1}),
        ({"name": "fedprox", "mu": 0.1}, {"name": "fedprox", "mu": 0.1}),
        ({"name": "fedprox"}, {"name": "fedprox"}),
        ({"a": {}, "b": {}}, {"a": {}, "b": {}}),
        ({"mu": 0.1}, {"mu": 0.1}),
        (None, None),
        (3, 3),
    ],
    ids=str,
)
def test_short_forms_of_a_choice(short, full):
    assert expand_choice(short) == full


def test_all_forms_of_a_choice_are_the_same_settings():
    forms = ["fedavg", {"fedavg": None}, {"fedavg": {}}, {"name": "fedavg"}, FedAvg(name="fedavg")]
    assert {recipe(local=form) for form in forms} == {recipe()}


def is_choice(field):
    unions = [field.annotation, *typing.get_args(field.annotation)]
    metadata = [
        *field.metadata,
        *(m for union in unions for m in getattr(union, "__metadata__", ())),
    ]
    return any(getattr(part, "func", None) is expand_choice for part in metadata)


def test_choices_are_known_to_merging():
    # Merging and messages know a choice by its key.
    found = {
        field.alias or name
        for kind in [*settings_classes(), RunLength]
        for name, field in kind.model_fields.items()
        if is_choice(field)
    }
    assert found == CHOICES


#: Beside the average, which is no module of its own.
RobustRule = ByName[Median | TrimmedMean | Krum]
#: Choices, by the package whose modules implement the alternatives.
PACKAGES = {
    "data.partitions": Partition,
    "training.losses": ClientLoss,
    "algorithm.local_trainers": LocalTrainer,
    "algorithm.one_shot.aggregators": Aggregator,
    "algorithm.one_shot.aggregator_training": AggregatorTraining,
    "algorithm.one_shot.outliers": Outliers,
    "algorithm.global_trainers.transfers": Transfer,
}


@pytest.mark.parametrize(
    ("package", "choice"),
    [
        *PACKAGES.items(),
        ("data.datasets", Data),
        ("models.architectures", Model),
        ("algorithm.aggregation.server_optimizers", ServerOptimiser),
        ("algorithm.aggregation.rules", RobustRule),
        ("algorithm.ensemble_trainers", EnsembleTrainer),
        ("algorithm.one_shot", Members),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_name_has_a_module(package, choice):
    kinds = alternatives(choice)
    names = [name for kind in kinds for name in kind.names()]
    assert len(set(names)) == len(names)
    for kind in kinds:
        assert len(kind.modules()) == len(kind.names()) > 0
        for module in kind.modules():
            assert module.startswith(f"fedstage.{package}.")
            assert importlib.util.find_spec(module), f"{module}: no such module"


def test_stateful_trainers_are_those_that_carry_a_state():
    metadata = {"client": 0, "samples": 3}
    tensors = {"weight": torch.ones(2)}
    updates = [Update(None, tensors, tensors, metadata, kept=tensors)]
    headed = {"cnn_small": {"head": {}}}  # which MOON needs
    names = [name for kind in alternatives(LocalTrainer) for name in kind.names()]
    beside = {"model": headed, "ensemble": "clients", "server": SERVER}  # which Digest needs
    parts = ["resnet_upper", "resnet_lower"]  # which Gkt needs
    split = {"model": parts[0], "architectures": parts, "global_models": 2, "server_model": True}
    drift = {"aggregation": {"server_optimizer": "drift"}}
    own = {"gkt": split, "feddyn": drift, "feddc": drift}
    needed = {name: beside | own.get(name, {}) for name in names}
    for settings in (recipe(local=name, **needed[name]).local for name in names):
        state = local_trainer(settings).next_state({}, updates, clients=2)
        assert bool(state) == (settings.keeps_state and settings.name != "fedgen")  # `shared`


# --- one part -------------------------------------------------------------------------------------


def test_milestones_of_yaml_are_a_list():
    schedule = {"step": {"milestones": [0.5, 0.75]}}
    client = Client.model_validate({**CLIENT, "schedule": schedule})
    assert client.schedule.milestones == (0.5, 0.75)


def test_devices():
    for device in ("auto", "cpu", "cuda", "cuda:0", "cuda:12"):
        assert Numerics(device=device).device == device
    for device in ("tpu", "cuda:", "cuda:x", "cpu ", " cpu", "CUDA", "", "cpu\n"):
        with pytest.raises(ValidationError):
            Numerics(device=device)


# --- what must fit together -----------------------------------------------------------------------


def refusal(**changes):
    with pytest.raises(ValidationError) as caught:
        recipe(**changes)
    (fault,) = caught.value.errors()
    return fault["msg"]


def test_a_division_says_whether_anything_is_public():
    divided = {"cifar10": {"division": [7, 1, 2]}}
    nothing = {"cifar10": {"division": [7, 0, 2]}}
    estimated = {"model": "resnet8", "aggregation": {"batch_norm": "re_estimate"}}
    assert recipe(**DISTILLED, data=divided)
    assert "data.held_out = 0" in refusal(**DISTILLED, data=nothing)
    assert re_estimates(recipe(**estimated, data=divided))
    assert "data.held_out = 0" in refusal(**estimated, data=nothing)


def test_models_with_running_statistics():
    def has(model):
        return has_batch_norm(recipe(model=model).model)

    assert [has(model) for model in ("resnet8", "wrn16_2")] == [True, True]
    assert [has(model) for model in ("cnn_small", "logistic_regression")] == [False, False]
    assert has({"cnn_small": {"norm": "batch"}})
    assert not has({"resnet8": {"norm": "group"}})


def test_settings_of_a_distillation_may_stand_there_unused():
    settings = recipe(ensemble="clients", server=SERVER)
    assert settings.global_trainer is None
    assert settings.server.steps == 20


def test_global_is_the_only_name_of_the_global_trainer():
    assert recipe(**DISTILLED).global_trainer.name == "basic"
    with pytest.raises(ValidationError, match="global_trainer"):
        recipe(ensemble="clients", server=SERVER, global_trainer="basic")


def test_local_recipe_has_the_fields_of_a_recipe_that_do_not_need_a_federation():
    whole = {**OneShotRecipe.model_fields, **Recipe.model_fields}
    assert set(LocalRecipe.model_fields) - {"pooled", "on_core"} < set(whole)
    for name in set(LocalRecipe.model_fields) - {"pooled", "on_core"}:
        own, other = LocalRecipe.model_fields[name], whole[name]
        assert (own.annotation, own.default) == (other.annotation, other.default), name


def test_a_one_shot_recipe_has_the_fields_of_a_recipe_that_it_shares_with_one():
    shared = set(OneShotRecipe.model_fields) - set(OneShot.model_fields)
    assert shared < set(Recipe.model_fields)
    for name in shared:
        own, other = OneShotRecipe.model_fields[name], Recipe.model_fields[name]
        assert (own.annotation, own.default) == (other.annotation, other.default), name


def test_a_changed_copy_of_settings_has_a_hash_of_its_own():
    recipe = Recipe.model_validate(BASE)
    before = hash(recipe)
    changed = recipe.model_copy(update={"seed": recipe.seed + 1})
    assert changed != recipe
    assert hash(changed) == hash(Recipe.model_validate(BASE | {"seed": recipe.seed + 1})) != before
    assert hash(Recipe.model_validate(BASE)) == before
    assert len({recipe, changed, Recipe.model_validate(BASE)}) == 2
    assert recipe.model_dump() == Recipe.model_validate(BASE).model_dump()


@pytest.mark.parametrize(
    ("data", "public", "fault"),
    [
        ("digits", "cifar10", "public = cifar10: images with 3 channels: must have 1, as the"),
        ("svhn", "digits", "public = digits: images with 1 channels: must have 3, as the"),
        ("cifar10", {"parquet": {"folder": "pictures"}}, None),
        ({"image_tensors": {"folder": "grey"}}, "digits", None),
    ],
)
def test_public_images_have_the_channels_of_the_clients(data, public, fault):
    recipe = distilled(data=data, public=public, ensemble="clients", **{"global": "basic"})
    if fault is None:
        validate(Recipe, recipe, "here")
        return
    with pytest.raises(FedstageError, match=fault):
        validate(Recipe, recipe, "here")
