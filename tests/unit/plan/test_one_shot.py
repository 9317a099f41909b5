"""Which settings of a one-shot recipe reach which of its files."""

import pytest
from tests.shared.graph import lists_of

from fedstage.plan import data_files, unfederated
from fedstage.plan import one_shot as shot
from fedstage.plan.generated import client_generators, generated_images, synthesised
from fedstage.plan.graph import name_of
from fedstage.plan.one_shot import (
    traffic_tables,
    travelling_models,
)
from fedstage.plan.one_shot_sharing import (
    alone,
    client_model,
    local_recipe,
    members,
    unquantised,
)
from fedstage.settings.one_shot import OneShot, OneShotRecipe
from fedstage.settings.recipes import Recipe

CLIENT = {"epochs": 2, "batch_size": 16, "learning_rate": 0.05}
SERVER = {"steps": 3, "batch_size": 8, "learning_rate": 0.1}
ROUNDS = {"federated": {"rounds": 5}}
BASE = {
    "data": {"digits": {"server_validation": 20}},
    "clients": 4,
    "partition": {"dirichlet": {"alpha": 0.1}},
    "validation": 0.1,
    "aggregator_fraction": 0.1,
    "model": "cnn_small",
    "client": CLIENT,
    "aggregator": "mlp",
    "aggregator_training": ROUNDS,
    "seed": 0,
}


def one_shot(**changes):
    return OneShotRecipe.model_validate({**BASE, **changes})


def aggregator_id(recipe):
    return shot.aggregator(recipe).split("/")[2]


def student_id(recipe):
    return shot.one_shot_metrics_file(recipe, "test").split("/")[2]


def student_or_none(recipe):
    return None if recipe.distillation is None else student_id(recipe)


IDS = {
    "partition": lambda recipe: name_of(data_files.clients_table(local_recipe(recipe))),
    "models": lambda recipe: unfederated.local_folder(local_recipe(recipe)),
    "aggregator": aggregator_id,
    "student": student_or_none,
}
ALL, FITTED, TAUGHT = set(IDS), {"aggregator", "student"}, {"student"}
TRAINED = {"models", "aggregator", "student"}
#: Each field, a changed value, and the ids that must change with it; no other may.
REACH = {
    "data": ({"digits": {"test": 300, "server_validation": 20}}, ALL),
    "clients": (5, ALL),
    "partition": ("iid", ALL),
    "validation": (0.2, ALL),
    "aggregator_fraction": (0.2, ALL),
    "core": ({"samples": "share"}, ALL),
    "local_fraction": (0.9, set()),  # what is meant without it
    "model": ("logistic_regression", TRAINED),
    "architectures": (["cnn_small", "logistic_regression"], TRAINED),
    "initialisation": ("own", TRAINED),
    "start": ("results/training/a/round_0003/group_0/aggregated.safetensors", TRAINED),
    "client": ({**CLIENT, "momentum": 0.5}, TRAINED),
    "quantisation": ("int8", FITTED),
    "unknown": ({"attack": None}, TRAINED),
    "prototypes": ({"apart": 0.5}, TRAINED),
    "members": ({"random": {"count": 2}}, FITTED),
    "aggregator": ({"mlp": {"hidden": 8}}, FITTED),
    "aggregator_training": ({"federated": {"rounds": 6}}, FITTED),
    "forget": ([2], FITTED),
    "distillation": ("l1", TAUGHT),
    "student": ("resnet8", TAUGHT),
    "server": ({**SERVER, "steps": 4}, TAUGHT),
    "public": ("cifar10", TAUGHT),
    "generator": ("cvae", set()),  # without public = generated nobody reads it; see below
    "numerics": ({"threads": 2}, TRAINED),
    "seed": (1, ALL),
}


@pytest.mark.parametrize("field", REACH)
def test_a_changed_setting_changes_the_ids_that_it_reaches_and_no_other(field):
    value, expected = REACH[field]
    taught = {"distillation": "kl", "server": SERVER}
    if field == "generator":
        taught["distillation"] = None  # which would need its images
    if field == "prototypes":  # which not all models can have
        taught["model"] = "resnet8"
    if field == "start":  # which an aggregator that needs unseen samples may not have
        taught["aggregator"] = "weighted"
    before, after = one_shot(**taught), one_shot(**taught | {field: value})
    assert before != after
    assert {name for name, of in IDS.items() if of(before) != of(after)} == expected


def test_every_field_is_in_the_table_above():
    assert set(OneShotRecipe.model_fields) == set(REACH)


@pytest.mark.parametrize("aggregator", ["averaging", "weighted", "confidence", "voting"])
def test_how_an_aggregator_is_trained_does_not_reach_one_that_is_not(aggregator):
    trained = one_shot(aggregator=aggregator)
    assert aggregator_id(trained) == aggregator_id(
        one_shot(aggregator=aggregator, aggregator_training=None)
    )


CLOSED = {"distillation": "closed_form", "model": "resnet8"}


@pytest.mark.parametrize(
    ("changes", "reaches"),
    [
        ({"distillation": {"closed_form": {"covariance": "diagonal"}}}, False),
        ({"forget": [1]}, False),
        ({"client": {**CLIENT, "epochs": 9}}, False),
        ({"aggregator": "averaging"}, False),
        ({"server": SERVER, "public": "cifar10"}, False),
        ({"local_fraction": 1.0, "aggregator": "averaging"}, True),
        ({"model": "resnet20"}, True),
        ({"seed": 1}, True),
        ({"partition": "iid"}, True),
        ({"start": "results/training/a/round_0003/group_0/aggregated.safetensors"}, True),
    ],
    ids=str,
)
def test_moments_depend_on_samples_and_the_encoder_only(changes, reaches):
    if "start" in changes:  # which an aggregator that needs unseen samples may not have
        changes = changes | {"aggregator": "weighted"}
    recipes = one_shot(**CLOSED), one_shot(**CLOSED | changes)
    folders = {shot.feature_moments(recipe, 0) for recipe in recipes}
    assert (len(folders) == 2) == reaches


def test_a_closed_form_reads_the_moments_of_members_and_trains_nobody():
    recipe = one_shot(**CLOSED, forget=[1])
    read = shot.closed_form_model.job(recipe).inputs
    names = [path.rpartition("/")[2] for path in read["moments"]]
    assert names == [f"client_{client}.safetensors" for client in (0, 2, 3)]
    assert travelling_models(recipe) == [read["start"]]
    assert traffic_tables(recipe) == [
        f"results/distilled_models/{student_id(recipe)}/rounds.parquet"
    ]
    assert student_id(recipe) == student_id(one_shot(**CLOSED, forget=[1], server=SERVER))


def test_all_rules_have_the_same_clients():
    rules = ("averaging", "weighted", "linear", "per_class", "mlp", "voting", "moe")
    recipes = [one_shot(aggregator=rule) for rule in rules]
    assert len({unfederated.local_folder(local_recipe(recipe)) for recipe in recipes}) == 1
    assert len({aggregator_id(recipe) for recipe in recipes}) == 7


def test_training_on_all_samples_is_training_without_a_part_for_the_aggregator():
    whole = one_shot(aggregator="averaging", local_fraction=1.0)
    plain = one_shot(aggregator="averaging", aggregator_fraction=0.0)
    assert local_recipe(whole) == local_recipe(plain)
    assert aggregator_id(whole) == aggregator_id(plain)
    assert unfederated.local_folder(local_recipe(whole)) != unfederated.local_folder(
        local_recipe(one_shot())
    )
    assert "aggregator_fraction" not in data_files.clients_table(whole).job.settings


def test_clients_of_an_ensemble_are_the_clients_that_train_alone():
    settings = {key: value for key, value in BASE.items() if not key.startswith("aggregator")}
    federated = Recipe.model_validate(settings | {"participants": 2})
    whole = one_shot(aggregator="averaging", local_fraction=1.0)
    assert local_recipe(whole) == alone(federated, 1, pooled=False)
    own = OneShot(aggregator_fraction=0.1, initialisation="own")
    apart = alone(federated, 1, pooled=False, own=own)
    assert apart == local_recipe(one_shot(initialisation="own"))
    assert alone(federated, 1, pooled=True, own=own) == alone(federated, 1, pooled=True)


def test_a_federated_recipe_of_groups_trains_its_clients_alone_with_its_model():
    groups = {"global_models": 2, "architectures": ["cnn_small", "logistic_regression"]}
    settings = {key: value for key, value in BASE.items() if not key.startswith("aggregator")}
    recipe = Recipe.model_validate(settings | groups | {"participants": 2})
    assert alone(recipe, 1, pooled=False).architectures == ()


@pytest.mark.parametrize("setting", [{"round_decay": 0.9}, {"batches": "continued"}], ids=str)
def test_what_is_about_rounds_does_not_reach_clients(setting):
    client = {"steps": 4, "batch_size": 16, "learning_rate": 0.05}
    plain, changed = one_shot(client=client), one_shot(client=client | setting)
    assert local_recipe(plain) == local_recipe(changed)
    assert aggregator_id(plain) == aggregator_id(changed)


# --- architectures --------------------------------------------------------------------------------

SMALL, LINEAR = {"name": "cnn_small"}, {"name": "logistic_regression"}


def test_architectures_are_dealt_out_in_turn():
    recipe = one_shot(architectures=[SMALL, LINEAR], clients=5)
    names = [client_model(recipe, client).name for client in range(5)]
    assert names == [SMALL["name"], LINEAR["name"]] * 2 + [SMALL["name"]]
    assert names == [client_model(local_recipe(recipe), client).name for client in range(5)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([SMALL, LINEAR], [SMALL, LINEAR, SMALL, LINEAR]),
        ([SMALL, LINEAR, SMALL, LINEAR], [SMALL, LINEAR] * 3),
        ([SMALL], []),
        ([SMALL] * 4, []),
    ],
    ids=["repeated", "too many", "one", "all the same"],
)
def test_the_same_models_are_the_same_files_however_they_are_listed(one, other):
    ids = {
        unfederated.local_folder(local_recipe(one_shot(architectures=models)))
        for models in (one, other)
    }
    assert len(ids) == 1


def test_a_model_that_no_client_has_does_not_reach_clients():
    ids = {
        unfederated.local_folder(local_recipe(one_shot(architectures=[LINEAR], model=model)))
        for model in (SMALL, LINEAR, {"name": "resnet8"})
    }
    assert len(ids) == 1


# --- initial weights ------------------------------------------------------------------------------


def test_clients_start_from_one_model_or_each_from_its_own():
    common, own = (local_recipe(one_shot(initialisation=kind)) for kind in ("common", "own"))
    starts = {kind: [unfederated.local_start(kind, n) for n in range(4)] for kind in (common, own)}
    assert len(set(starts[common])) == 1
    assert len(set(starts[own])) == 4
    assert starts[own][0] == starts[common][0]
    assert unfederated.local_start(common, None) == starts[common][0]


def test_clients_of_one_architecture_start_from_its_common_weights():
    recipe = local_recipe(one_shot(architectures=[SMALL, LINEAR]))
    starts = [unfederated.local_start(recipe, client) for client in range(4)]
    assert starts[:2] == starts[2:]
    assert starts[0] != starts[1]


START = "results/training/a/round_0003/group_0/aggregated.safetensors"


def test_clients_and_a_student_of_their_architecture_start_from_what_was_trained_before():
    taught = {"aggregator": "weighted", "distillation": "l1", "server": SERVER, "start": START}
    recipe = one_shot(**taught)
    assert {unfederated.local_start(local_recipe(recipe), client) for client in range(4)} == {START}
    assert shot.student_start(recipe) == START
    other = one_shot(**taught, student="logistic_regression")
    assert "initial_models" in shot.student_start(other)


# --- forgetting -----------------------------------------------------------------------------------


def test_forgotten_clients_are_no_members():
    recipe = one_shot(forget=[2, 0])
    assert members(recipe) == [1, 3]
    assert [path.rpartition("/")[2] for path in unfederated.members_logits(recipe, "test")] == [
        "client_1-test.safetensors",
        "client_3-test.safetensors",
    ]
    assert aggregator_id(recipe) == aggregator_id(one_shot(forget=[0, 2, 2]))
    assert "-mlp-without_0_2-seed0-" in aggregator_id(recipe)


def test_an_aggregator_that_forgets_has_the_same_clients():
    assert local_recipe(one_shot(forget=[1])) == local_recipe(one_shot())


def test_many_forgotten_clients_leave_a_name_that_is_short():
    recipe = one_shot(clients=300, partition="iid", forget=list(range(0, 300, 2)))
    assert "-without_150_clients-" in aggregator_id(recipe)
    assert len(aggregator_id(recipe)) < 120


# --- students -------------------------------------------------------------------------------------


def taught(**changes):
    return one_shot(**{"distillation": "kl", "server": SERVER, **changes})


def test_a_student_has_the_architecture_of_the_model_unless_something_else_is_said():
    assert student_id(taught(student="cnn_small")) == student_id(taught())
    mixed = taught(architectures=[LINEAR], model="cnn_small")
    assert shot.student_file(mixed).job.config.student.name == "cnn_small"
    assert student_id(mixed) != student_id(taught(architectures=[LINEAR], model=LINEAR))
    assert aggregator_id(mixed) == aggregator_id(one_shot(model=LINEAR))


@pytest.mark.parametrize(("transfer", "read"), [("kl", True), ("l1", False), ("fedet", False)])
@pytest.mark.parametrize(
    "setting", [{"temperature": 2.0}, {"tau_squared": False}, {"sharpening": 2.0}], ids=str
)
def test_temperatures_reach_what_learns_probabilities(transfer, read, setting):
    one, other = (
        student_id(taught(distillation=transfer, server=SERVER | changes))
        for changes in ({}, setting)
    )
    assert (one != other) == read


def test_a_student_reads_the_aggregator_and_clients_of_the_recipe_without_one():
    for changes in ({}, {"forget": [2]}, {"architectures": [SMALL, LINEAR]}):
        recipe, plain = taught(**changes), one_shot(**changes)
        assert aggregator_id(recipe) == aggregator_id(plain)
        assert local_recipe(recipe) == local_recipe(plain)
        assert shot.one_shot_metrics_file(recipe, "test") != shot.one_shot_metrics_file(
            plain, "test"
        )


def test_students_of_a_seed_start_from_one_model():
    starts = {shot.student_start(taught(distillation=kind)) for kind in ("kl", "l1", "fedet")}
    assert starts == {unfederated.local_start(local_recipe(one_shot()), 0)}


def test_images_are_whole_sets_or_training_samples_of_a_role():
    recipe = local_recipe(one_shot())
    of_sets = {
        name: data_files.data_file(recipe.data, name)
        for name in ("test", "test_own", "held_out", "server_validation")
    }
    of_roles = dict.fromkeys(
        ("validation", "aggregator"), data_files.data_file(recipe.data, "train")
    )
    for images, expected in (of_sets | of_roles).items():
        assert data_files.samples_file(recipe, images) == expected
    assert (
        data_files.samples_file(recipe, "svhn-1234") == "results/data/svhn-1234/train.safetensors"
    )


# --- what an aggregator reads ---------------------------------------------------------------------


STOPPED = {"federated": {"rounds": 5, "early_stopping": {}}}
PROXY = {"proxy": {"steps": 5}}


@pytest.mark.parametrize(
    ("changes", "images"),
    [
        ({"aggregator": "averaging"}, []),
        ({"aggregator": "weighted"}, []),
        ({"aggregator": "voting"}, ["aggregator"]),
        ({"aggregator": "voting", "aggregator_training": PROXY}, ["aggregator"]),
        ({}, ["aggregator"]),
        ({"aggregator_training": STOPPED}, ["aggregator", "validation"]),
        ({"members": {"best": {"count": 2}}}, ["aggregator", "validation"]),
        ({"aggregator": "averaging", "members": {"best": {"count": 2}}}, ["validation"]),
        ({"aggregator": "averaging", "members": {"largest": {"count": 2}}}, []),
        ({"aggregator_training": PROXY}, ["server_validation"]),
    ],
    ids=str,
)
def test_an_aggregator_reads_what_it_is_fitted_to_and_stopped_by(changes, images):
    read = lists_of(shot.aggregator.job(one_shot(**changes)).inputs)
    every = [path for paths in read.values() for path in paths]
    spoken = [path for path in every if "/logits/" in path]
    assert {path.rpartition("-")[2] for path in spoken} == {
        f"{name}.safetensors" for name in images
    }
    assert len(spoken) == 4 * len(images)
    assert not [path for path in every if "test" in path.rpartition("/")[2]]


# --- quantised models -----------------------------------------------------------------------------


def test_each_precision_has_its_own_logits_of_the_same_models():
    plain, rough = one_shot(), one_shot(quantisation="int8")
    folder = unfederated.local_folder(local_recipe(plain))
    assert local_recipe(plain) == local_recipe(rough)
    assert unfederated.members_quantised(plain) == []
    for client, (logits, model) in enumerate(
        zip(
            unfederated.members_logits(rough, "test"),
            unfederated.members_quantised(rough),
            strict=True,
        )
    ):
        precision = name_of(logits)
        assert precision.startswith("int8-")
        assert logits == f"{folder}/logits/{precision}/client_{client}-test.safetensors"
        assert model == f"{folder}/quantised/{precision}/client_{client}.safetensors"
    assert "/logits/fp32/" in unfederated.members_logits(plain, "test")[0]


def test_of_forgotten_clients_no_quantised_model_is_read():
    rough = one_shot(quantisation="int8")
    left = one_shot(quantisation="int8", forget=[1])
    every = unfederated.members_quantised(rough)
    assert unfederated.members_quantised(left) == [every[0], *every[2:]]


@pytest.mark.parametrize(
    "changed",
    [{"weights": "per_tensor"}, {"reduce_range": False}, {"calibration": {"samples": 9}}],
    ids=str,
)
def test_how_models_are_quantised_is_in_the_names_of_what_is_made_of_them(changed):
    recipes = [one_shot(quantisation={"int8": how}) for how in ({}, changed)]
    assert len({unfederated.members_quantised(recipe)[0] for recipe in recipes}) == 2
    assert len({aggregator_id(recipe) for recipe in recipes}) == 2
    assert len({unfederated.local_folder(local_recipe(recipe)) for recipe in recipes}) == 1


def test_clients_that_train_alone_are_scored_in_int8_beside_their_own_metrics():
    settings = {key: value for key, value in BASE.items() if not key.startswith("aggregator")}
    federated = Recipe.model_validate(settings | {"participants": 2})
    rough = OneShot.model_validate({"aggregator_fraction": 0.1, "quantisation": "int8"})
    plain, quantised = (
        alone(federated, 1, pooled=False, own=own)
        for own in (OneShot(aggregator_fraction=0.1), rough)
    )
    assert unfederated.local_folder(plain) == unfederated.local_folder(quantised)
    assert unquantised(quantised) == plain == local_recipe(one_shot())
    assert unfederated.models_in_precision(plain) == unfederated.local_models(quantised)
    assert unfederated.models_in_precision(quantised) == unfederated.members_quantised(
        one_shot(quantisation="int8")
    )
    precision = name_of(unfederated.models_in_precision(quantised)[0])
    for client in (None, 3):
        files = [
            unfederated.local_metrics_file(one, "test", 1, client) for one in (plain, quantised)
        ]
        assert files[1] == files[0].replace("/metrics/fp32/", f"/metrics/{precision}/")
    models = unfederated.models_in_precision(quantised)
    for client, expected in ((None, models), (3, [models[3]])):
        scores = unfederated.local_metrics_file(quantised, "test", 1, client)
        assert scores.job.inputs["models"] == expected
    assert alone(federated, 1, pooled=True, own=rough) == alone(federated, 1, pooled=True)


# --- generated images -----------------------------------------------------------------------------

GENERATING = {"generator": "cvae", "public": "generated", "aggregator": "averaging"}
GENERATING |= {"server": SERVER, "distillation": "labels"}


def generating_recipe(**changes):
    return one_shot(**{**GENERATING, **changes})


def of_generators(recipe):
    return client_generators(recipe)[0].split("/")[2], generated_images(recipe).split("/")[2]


@pytest.mark.parametrize(
    ("changes", "reached"),
    [
        ({"client": {**CLIENT, "momentum": 0.5}}, (False, False, False)),
        ({"aggregator": "weighted"}, (False, False, False)),
        ({"quantisation": "int8"}, (False, False, False)),
        ({"model": "resnet8", "student": "cnn_small"}, (False, False, False)),
        ({"server": {**SERVER, "steps": 4}}, (False, False, True)),
        ({"generator": {"cvae": {"samples": 9}}}, (False, True, True)),
        ({"forget": [2]}, (False, True, True)),
        ({"generator": {"cvae": {"latent": 9}}}, (True, True, True)),
        ({"aggregator_fraction": 0.2}, (True, True, True)),
        ({"seed": 1}, (True, True, True)),
    ],
    ids=str,
)
def test_what_reaches_generators_images_and_who_learns_their_labels(changes, reached):
    before, after = generating_recipe(), generating_recipe(**changes)
    ids = [(*of_generators(recipe), student_id(recipe)) for recipe in (before, after)]
    assert tuple(one != other for one, other in zip(*ids, strict=True)) == reached


def test_who_learns_labels_reads_no_model_of_a_client():
    recipe = generating_recipe()
    read = lists_of(shot.distilled_model.job(recipe).inputs)
    assert not {"aggregator", "logits"} & set(read)
    assert read["public"] == [f"results/generated/{of_generators(recipe)[1]}/train.safetensors"]
    assert traffic_tables(recipe) == [
        f"results/generated/{of_generators(recipe)[1]}/rounds.parquet"
    ]
    assert travelling_models(recipe) == client_generators(recipe)
    taught = generating_recipe(distillation="kl")
    assert len(traffic_tables(taught)) == 2
    (first, *_) = lists_of(shot.distilled_model.job(taught).inputs)["logits"]
    assert first.endswith(f"client_0-generated.{of_generators(recipe)[1]}.safetensors")


def test_a_forgotten_clients_generator_is_not_read_and_trains_nobody_anew():
    recipe = generating_recipe(forget=[1])
    assert [path[-20:] for path in client_generators(recipe)] == [
        f"client_{client}.safetensors" for client in (0, 2, 3)
    ]
    assert client_generators(recipe)[0] == client_generators(generating_recipe())[0]


# --- images that the server generates against the ensemble ----------------------------------------

EPOCHS = {"epochs": 2, "batch_size": 8, "learning_rate": 0.1, "temperature": 2.0}


def boosted(**changes):
    return generating_recipe(
        **{"generator": "coboosting", "distillation": "cotrained", "server": EPOCHS} | changes
    )


@pytest.mark.parametrize(
    ("changes", "reached"),
    [
        ({"client": {**CLIENT, "momentum": 0.5}}, True),
        ({"model": "resnet8", "student": "cnn_small"}, True),
        ({"student": "resnet8"}, True),
        ({"server": {**EPOCHS, "epochs": 3}}, True),
        ({"forget": [2]}, True),
        ({"generator": {"coboosting": {"step": 0.0}}}, True),
        ({"aggregator": "weighted"}, False),
        ({"quantisation": "int8"}, False),
        ({"distillation": "kl"}, False),
        ({"distillation": "labels"}, False),
    ],
    ids=str,
)
def test_what_reaches_images_against_an_ensemble(changes, reached):
    before, after = boosted(), boosted(**changes)
    assert (generated_images(before) != generated_images(after)) == reached


@pytest.mark.parametrize("distillation", ["cotrained", "labels", "kl"])
def test_only_clients_models_travel_for_images_against_an_ensemble(distillation):
    recipe = boosted(distillation=distillation)
    models = unfederated.local_models(local_recipe(recipe))
    assert travelling_models(recipe) == synthesised.job(recipe).inputs["models"] == models
    assert traffic_tables(recipe) == [shot.aggregator(recipe, output="rounds")]
    folder = generated_images(recipe).job.folder
    assert folder.startswith("results/synthesised/")
    own = shot.student_file(recipe) == f"{folder}/student.safetensors"
    assert own == (distillation == "cotrained")
    read = lists_of(shot.distilled_model.job(recipe).inputs)
    assert read["public"] == [f"{folder}/train.safetensors"]
    assert ("logits" in read) == (distillation != "labels")
