import importlib.util
import typing
from importlib import import_module

import pytest
import torch
from pydantic import ValidationError

from fedstage.algorithm.exchange.updates import Update
from fedstage.algorithm.local_trainers import local_trainer
from fedstage.settings.aggregation import ServerOptimiser
from fedstage.settings.aggregators import Aggregator, AggregatorTraining
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
from fedstage.settings.model_rules import Krum, Median, TrimmedMean
from fedstage.settings.models import Model, has_batch_norm
from fedstage.settings.numerics import Numerics
from fedstage.settings.one_shot import OneShot, OneShotRecipe
from fedstage.settings.optimisation import Client, ClientLoss, Optimiser
from fedstage.settings.partitions import Partition
from fedstage.settings.recipes import LocalRecipe, Recipe, re_estimates
from fedstage.settings.runs import RunLength
from fedstage.settings.selections import Members
from fedstage.settings.server import Server
from fedstage.settings.transfers import Transfer
from fedstage.settings.unknown import Outliers

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
        "numerics", "one_shot", "optimisation", "partitions", "quantisation", "transfers",
        "unknown",
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
#: Choices, by the package in which each alternative is a module of the same name.
PACKAGES = {
    "data.partitions": Partition,
    "training.losses": ClientLoss,
    "algorithm.local_trainers": LocalTrainer,
    "algorithm.one_shot.aggregators": Aggregator,
    "algorithm.one_shot.aggregator_training": AggregatorTraining,
    "algorithm.one_shot.outliers": Outliers,
    "algorithm.global_trainers.transfers": Transfer,
}


@pytest.mark.parametrize(("package", "choice"), PACKAGES.items(), ids=PACKAGES)
def test_alternatives_are_called_as_their_modules_are(package, choice):
    for kind in alternatives(choice):
        assert kind.modules() == tuple(f"fedstage.{package}.{name}" for name in kind.names())


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
    updates = [Update(None, {"weight": torch.ones(2)}, {"weight": torch.ones(2)}, metadata)]
    headed = {"cnn_small": {"head": {}}}  # which MOON needs
    names = [name for kind in alternatives(LocalTrainer) for name in kind.names()]
    beside = {"model": headed, "ensemble": "clients", "server": SERVER}  # which Digest needs
    parts = ["resnet_upper", "resnet_lower"]  # which Gkt needs
    split = {"model": parts[0], "architectures": parts, "global_models": 2, "server_model": True}
    needed = {name: beside | (split if name == "gkt" else {}) for name in names}
    for settings in (recipe(local=name, **needed[name]).local for name in names):
        state = local_trainer(settings).next_state({}, updates, clients=2)
        assert bool(state) == settings.keeps_state


# --- one part -------------------------------------------------------------------------------------


def test_client_takes_either_epochs_or_steps():
    length = {"batch_size": 8, "learning_rate": 0.1}
    for given in ({"epochs": 1}, {"steps": 1}, {"epochs": None, "steps": 1}):
        client = Client.model_validate(length | given)
        assert (client.epochs, client.steps).count(None) == 1
    for given in ({}, {"epochs": 1, "steps": 1}, {"epochs": None}, {"epochs": None, "steps": None}):
        with pytest.raises(ValidationError, match="give either epochs or steps"):
            Client.model_validate(length | given)


def test_batches_that_go_on_are_counted_in_steps():
    raw = {"batch_size": 8, "learning_rate": 0.1, "batches": "continued"}
    assert Client.model_validate({**raw, "steps": 3}).batches == "continued"
    with pytest.raises(ValidationError, match="batches = 'continued': only with steps"):
        Client.model_validate({**raw, "epochs": 3})


@pytest.mark.parametrize("kind", [Optimiser, Server])
def test_nesterov_needs_momentum(kind):
    raw = {"batch_size": 8, "learning_rate": 0.1, "nesterov": True}
    raw |= {"steps": 1} if kind is Server else {}
    with pytest.raises(ValidationError, match="needs momentum > 0"):
        kind.model_validate(raw)
    assert kind.model_validate({**raw, "momentum": 0.9}).nesterov


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("learning_rate", [1e-9, 10], [0, -1]),
        ("momentum", [0, 0.99], [1.0, -0.1]),
        ("weight_decay", [0, 1], [-1e-9]),
        ("clip_norm", [None, 0.1], [0, -1]),
        ("batch_size", [1, 1000], [0, 1.5]),
        ("round_decay", [1e-9, 1], [0, 1.01]),
        ("loss.gamma", [0, 0.5, 5], [-1e-9, None]),
        ("loss.class_weights", [None, [1], [0.5, 2e3]], [[], [1, 0], [1, -2], 1, [None]]),
    ],
)
def test_ranges_of_a_client(field, good, bad):
    part, _, key = field.rpartition(".")

    def client(value):
        changes = {"loss": {"focal": {key: value}}} if part else {key: value}
        return Client.model_validate(CLIENT | changes)

    for value in good:
        found = getattr(client(value).loss if part else client(value), key)
        assert found == (tuple(value) if isinstance(value, list) else value)
    for value in bad:
        with pytest.raises(ValidationError):
            client(value)


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


def test_number_of_participants():
    assert recipe(participants=10).participants == 10
    assert "participants = 11: at most clients = 10" in refusal(participants=11)


def test_a_participant_for_each_group():
    assert recipe(participants=4, global_models=4).global_models == 4
    message = refusal(participants=4, global_models=5)
    assert "participants = 4: at least global_models = 5" in message


def test_batches_go_on_where_all_clients_take_part():
    client = {"steps": 3, "batch_size": 8, "learning_rate": 0.1, "batches": "continued"}
    assert recipe(client=client, participants=10)
    told = "participants = 8: must be clients = 10 with client.batches = continued"
    assert told in refusal(client=client)


@pytest.mark.parametrize(
    ("client", "told"),
    [({"momentum": 0.9}, "momentum = 0"), ({"optimiser": "adam"}, "optimiser = sgd")],
    ids=["momentum", "adam"],
)
def test_scaffold_needs_plain_sgd(client, told):
    assert recipe(local="scaffold").local.name == "scaffold"
    assert f"local = scaffold: needs client.{told}" in refusal(
        local="scaffold", client={**CLIENT, **client}
    )
    assert recipe(local="fedprox", client={**CLIENT, **client})


def test_distillation_needs_a_teacher_and_settings_of_the_server():
    for key in ("ensemble", "server"):
        assert f"{key} = null" in refusal(**DISTILLED | {key: None})


def test_distillation_needs_public_data():
    nothing = {"digits": {"held_out": 0}}
    assert "data.held_out = 0" in refusal(**DISTILLED, data=nothing)
    assert recipe(**DISTILLED, data=nothing, public="svhn")
    assert recipe(data=nothing)


@pytest.mark.parametrize(
    ("data", "model"),
    [({"table": {"folder": "mine", "label": "y"}}, "mlp"), ({"ag_news": {}}, "embedding_bag")],
    ids=["table", "texts"],
)
def test_public_samples_are_of_the_kind_of_the_clients(data, model):
    told = "public = svhn: has images, and the samples of data = "
    assert told in refusal(**DISTILLED, data=data, model=model, public="svhn")


def test_a_division_says_whether_anything_is_public():
    divided = {"cifar10": {"division": [7, 1, 2]}}
    nothing = {"cifar10": {"division": [7, 0, 2]}}
    estimated = {"model": "resnet8", "aggregation": {"batch_norm": "re_estimate"}}
    assert recipe(**DISTILLED, data=divided)
    assert "data.held_out = 0" in refusal(**DISTILLED, data=nothing)
    assert re_estimates(recipe(**estimated, data=divided))
    assert "data.held_out = 0" in refusal(**estimated, data=nothing)


def test_only_public_images_that_were_held_out_are_changed():
    changed = {"digits": {"held_out_augmentation": "flip"}}
    assert recipe(**DISTILLED, data=changed)
    assert recipe(data=changed, public="svhn"), "which no student sees"
    told = "held_out_augmentation = 'flip': only in data, with public = held_out; public ="
    assert f"data.{told} svhn" in refusal(**DISTILLED, data=changed, public="svhn")
    public = {"svhn": {"held_out": 9, "held_out_augmentation": "flip"}}
    assert f"public.{told} svhn" in refusal(**DISTILLED, public=public)


JUDGED = {"data": {"digits": {"server_validation": 10}}, **DISTILLED}


def server(**changes):
    return {"server": {**SERVER, **changes}}


@pytest.mark.parametrize("change", [{"drop_worst": "as_released"}, {"early_stopping": {}}], ids=str)
def test_what_a_server_judges_by_needs_its_validation_set(change):
    assert "not data.server_validation = 0" in refusal(**DISTILLED | server(**change))
    assert recipe(**JUDGED | server(**change)).data.server_validation == 10


@pytest.mark.parametrize("ensemble", ["aggregated", "bayesian"])
def test_the_worst_are_left_out_of_ensembles_of_clients_only(ensemble):
    settings = JUDGED | {"ensemble": ensemble} | server(drop_worst="as_published")
    assert "server.drop_worst = as_published: needs ensemble = clients, not ensemble" in refusal(
        **settings
    )


def test_the_worst_are_left_out_of_plain_averages_only():
    judged = JUDGED | server(drop_worst="as_published")
    moved = {"aggregation": {"learning_rate": 0.5}}
    assert "not aggregation.learning_rate = 0.5, for which it must be 1" in refusal(
        **judged | moved
    )
    statistics = {"aggregation": {"batch_norm": "local"}}
    assert recipe(**judged | statistics)  # a model without them
    with_norms = {"model": {"cnn_small": {"norm": "batch"}}}
    assert recipe(**judged | with_norms)
    message = refusal(**judged | with_norms | statistics)
    assert "server.drop_worst = as_published: needs the plain average of clients' models" in message
    assert "not aggregation.batch_norm = local, for which it must be average" in message


def test_settings_of_a_server_compose_and_one_says_which_weights_are_kept():
    every = server(drop_worst="as_published", early_stopping={"every": 2}, sharpening=2.0)
    assert recipe(**JUDGED | every).server.early_stopping.patience == 1000
    both = server(early_stopping={}, swa={"every": 1})
    assert "swa and early_stopping: give one" in refusal(**JUDGED | both)


@pytest.mark.parametrize(("start", "every", "fits"), [(0, 20, True), (19, 1, True), (1, 20, False)])
def test_weights_are_averaged_at_least_once(start, every, fits):
    settings = DISTILLED | server(swa={"start": start, "every": every})
    if fits:
        assert recipe(**settings).server.swa.every == every
    else:
        assert "swa.start = 1: at most steps - swa.every = 0" in refusal(**settings)


def test_a_bayesian_ensemble_has_settings_of_its_distribution_only():
    settings = {"distribution": "dirichlet", "variant": "as_released"}
    told = "variant = 'as_released': only for distribution = gaussian"
    assert told in refusal(**DISTILLED | {"ensemble": {"bayesian": settings}})


def test_statistics_are_estimated_on_public_data():
    model = {"cnn_small": {"norm": "batch"}}
    estimated = {"model": model, "aggregation": {"batch_norm": "re_estimate"}}
    nothing = {"digits": {"held_out": 0}}
    message = refusal(**estimated, data=nothing)
    assert "data.held_out = 0: public = held_out needs at least 1 sample" in message
    assert "core = null: public = core needs one" in refusal(**estimated, public="core")
    assert re_estimates(recipe(**estimated, data=nothing, public="svhn"))
    assert re_estimates(recipe(**estimated))
    without = recipe(**estimated | {"model": {"cnn_small": {"norm": "group"}}}, data=nothing)
    assert not re_estimates(without)


def test_models_with_running_statistics():
    def has(model):
        return has_batch_norm(recipe(model=model).model)

    assert [has(model) for model in ("resnet8", "wrn16_2")] == [True, True]
    assert [has(model) for model in ("cnn_small", "logistic_regression")] == [False, False]
    assert has({"cnn_small": {"norm": "batch"}})
    assert not has({"resnet8": {"norm": "group"}})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("aggregation", {"batch_norm": "drop"}),
        ("aggregation", {"learning_rate": 0}),
    ],
    ids=str,
)
def test_other_values_are_refused(key, value):
    with pytest.raises(ValidationError, match=key):
        recipe(**{key: value})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"architectures": ["cnn_small"]},
            "architectures: 1 of them: must be global_models = 2, one for each group",
        ),
        (
            {"architectures": ["resnet8", "cnn_small"]},
            "architectures.0 = 'resnet8': must be model, the main one's",
        ),
    ],
    ids=["too few", "another main one"],
)
def test_architectures_are_one_a_group_the_main_one_first(change, told):
    assert told in refusal(global_models=2, **change)


TWO = {"global_models": 2, "architectures": ["cnn_small", "resnet8"]}


PATIENTS = {"data": "heart_disease", "model": "logistic_regression"}
NO_IMAGES = "only for images, and the samples of data = heart_disease are features"


@pytest.mark.parametrize("model", ["cnn_small", "resnet8", "wrn16_2"])
def test_models_of_images_take_no_features(model):
    assert recipe(**PATIENTS)
    told = f"model = '{model}': takes images, and the samples of data = heart_disease are features"
    assert told in refusal(**PATIENTS | {"model": model})


@pytest.mark.parametrize(
    ("data", "model", "kind"),
    [
        ("camelyon16", "deep_mil", "bags"),
        ("ag_news", "distilbert", "tokens"),
        ("ag_news", "lstm", "tokens"),
        ("sent140", "bert", "tokens"),
    ],
)
def test_graphs_are_for_steps_of_one_shape(data, model, kind):
    samples = {"data": data, "model": model, "numerics": {"device": "cuda", "cuda_graphs": True}}
    assert f"cuda_graphs = true: not for the {kind} of data = {data}" in refusal(**samples)
    assert recipe(**samples | {"numerics": {"device": "cuda"}})
    assert recipe(**PATIENTS, numerics=samples["numerics"])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"client": {**CLIENT, "augmentation": "flip"}}, "client.augmentation = 'flip': "),
        (
            {"server": {**SERVER, "augmentation": "crop_flip"}},
            "server.augmentation = 'crop_flip': ",
        ),
        ({"numerics": {"memory_format": "channels_last"}}, "memory_format = 'channels_last': "),
    ],
    ids=["client", "server", "numerics"],
)
def test_what_is_done_with_pixels_is_done_with_images_only(change, told):
    assert recipe(**change)
    assert told + NO_IMAGES in refusal(**PATIENTS | change)


@pytest.mark.parametrize("data", ["ag_news", "sent140"])
@pytest.mark.parametrize("model", ["distilbert", "lstm", "bert", "embedding_bag"])
def test_models_of_texts_have_a_vector_for_every_token(data, model):
    told = "model.vocabulary = 100: must be at least data.vocabulary_size = 30522"
    assert told in refusal(data=data, model={model: {"vocabulary": 100}})
    small = {data: {"vocabulary_size": 100}}
    assert recipe(data=small, model={model: {"vocabulary": 100}})


def test_an_lstm_is_not_compiled():
    compiled = {"data": "sent140", "numerics": {"compile": True}}
    assert "compile = true: not for model = lstm; use" in refusal(**compiled, model="lstm")
    assert recipe(**compiled, model="bert")


def test_users_are_set_aside_for_the_public_set():
    settings = {"model": "lstm", **DISTILLED}
    assert recipe(data={"sent140": {"held_out": 0.2}}, **settings).public.name == "held_out"
    message = refusal(data={"sent140": {"held_out": 0.0}}, **settings)
    assert "data.held_out = 0: public = held_out needs" in message


def test_all_groups_take_the_samples():
    models = {"global_models": 2, "architectures": ["logistic_regression", "cnn_small"]}
    assert "model = 'cnn_small': takes images" in refusal(**PATIENTS | models)


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
