"""Which settings of a one-shot recipe reach which of its files."""

from itertools import combinations, product

from tests.shared.graph import lists_of

from fedstage.plan import data_files, unfederated
from fedstage.plan import one_shot as shot
from fedstage.plan.generated import client_generators, generated_images, synthesised
from fedstage.plan.graph import name_of
from fedstage.plan.one_shot import traffic_tables, travelling_models
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
#: What recipes of rounds have, too.
SHARED = {
    "data": {"digits": {"server_validation": 20}}, "clients": 4, "model": "cnn_small", "seed": 0,
    "partition": {"dirichlet": {"alpha": 0.1}}, "validation": 0.1, "client": CLIENT,
}  # fmt: skip
BASE = SHARED | {
    "aggregator_fraction": 0.1,
    "aggregator": "mlp",
    "aggregator_training": {"federated": {"rounds": 5}},
}
START = "results/training/a/round_0003/group_0/aggregated.safetensors"
#: An aggregator that needs no unseen samples, which files trained before may have had.
STARTED = {"aggregator": "weighted", "start": START}
TAUGHT = {"distillation": "kl", "server": SERVER}
SMALL, LINEAR = {"name": "cnn_small"}, {"name": "logistic_regression"}


def one_shot(**changes):
    return OneShotRecipe.model_validate(BASE | changes)


def federated(**changes):
    return Recipe.model_validate(SHARED | {"participants": 2} | changes)


def local_folder(recipe):
    return unfederated.local_folder(local_recipe(recipe))


def aggregator_id(recipe):
    return shot.aggregator(recipe).split("/")[2]


def student_id(recipe):
    return shot.one_shot_metrics_file(recipe, "test").split("/")[2]


def numbers(paths):
    """Return the numbers of clients in the names of their files."""
    return [int(path.rpartition("/client_")[2].split("-")[0].split(".")[0]) for path in paths]


# --- which setting reaches which name -------------------------------------------------------------

IDS = {
    "partition": lambda recipe: name_of(data_files.clients_table(local_recipe(recipe))),
    "models": local_folder,
    "aggregator": aggregator_id,
    "student": lambda recipe: recipe.distillation and student_id(recipe),
}
ALL, TRAINED, FITTED = set(IDS), {"models", "aggregator", "student"}, {"aggregator", "student"}
#: Each field, a changed value, and the ids that must change with it; no other may. Some need
#: settings beside them.
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
    "start": (START, TRAINED, {"aggregator": "weighted"}),
    "client": ({**CLIENT, "momentum": 0.5}, TRAINED),
    "quantisation": ("int8", FITTED),
    "unknown": ({"attack": None}, TRAINED),
    "prototypes": ({"apart": 0.5}, TRAINED, {"model": "resnet8"}),
    "members": ({"random": {"count": 2}}, FITTED),
    "aggregator": ({"mlp": {"hidden": 8}}, FITTED),
    "aggregator_training": ({"federated": {"rounds": 6}}, FITTED),
    "forget": ([2], FITTED),
    "distillation": ("l1", {"student"}),
    "student": ("resnet8", {"student"}),
    "server": ({**SERVER, "steps": 4}, {"student"}),
    "public": ("cifar10", {"student"}),
    # Only where public = generated anybody reads it; see below.
    "generator": ("cvae", set(), {"distillation": None}),
    "numerics": ({"threads": 2}, TRAINED),
    "seed": (1, ALL),
}


def test_a_changed_setting_changes_the_ids_that_it_reaches_and_no_other():
    assert set(OneShotRecipe.model_fields) == set(REACH)
    for field, (value, expected, *beside) in REACH.items():
        base = TAUGHT | (beside[0] if beside else {})
        before, after = one_shot(**base), one_shot(**base | {field: value})
        assert before != after
        assert {name for name, of in IDS.items() if of(before) != of(after)} == expected, field


STEPS = {"steps": 4, "batch_size": 16, "learning_rate": 0.05}
RULES = ("averaging", "weighted", "linear", "per_class", "mlp", "voting", "moe")
BOTH, TAUGHT_MIXED = [SMALL, LINEAR], TAUGHT | {"architectures": [LINEAR]}
WHOLE = {"aggregator": "averaging", "local_fraction": 1.0}
TEMPERATURES = ({"temperature": 2.0}, {"tau_squared": False}, {"sharpening": 2.0})
#: Settings, others, and the ids that differ between them.
DIFFER = [
    # How an aggregator is trained does not reach one that is not; all rules have the same clients.
    *(({"aggregator": rule}, {"aggregator": rule, "aggregator_training": None}, set())
      for rule in ("averaging", "weighted", "confidence", "voting")),
    *(({"aggregator": rule}, {"aggregator": other}, {"aggregator"})
      for rule, other in combinations(RULES, 2)),
    # Training on all samples is training without a part for the aggregator.
    (WHOLE, {"aggregator": "averaging", "aggregator_fraction": 0.0}, set()),
    (WHOLE, {"aggregator": "averaging"}, {"partition", "models", "aggregator"}),
    # What is about rounds does not reach clients.
    *(({"client": STEPS}, {"client": STEPS | of_rounds}, set())
      for of_rounds in ({"round_decay": 0.9}, {"batches": "continued"})),
    # The same models are the same files, however they are listed, and whatever nobody has.
    *(({"architectures": one}, {"architectures": other}, set())
      for one, other in ((BOTH, BOTH * 2), (BOTH * 2, BOTH * 3), ([SMALL], []), ([SMALL] * 4, []))),
    *(({"architectures": [LINEAR], "model": model}, {"model": LINEAR}, set())
      for model in (SMALL, {"name": "resnet8"})),
    ({"forget": [2, 0]}, {"forget": [0, 2, 2]}, set()),
    ({"quantisation": {"int8": {}}}, {"quantisation": "int8"}, set()),
    # A student has the architecture of the model unless it has one of its own.
    (TAUGHT, TAUGHT | {"student": "cnn_small"}, set()),
    (TAUGHT_MIXED, TAUGHT_MIXED | {"model": LINEAR}, {"student"}),
    # It reads the aggregator and the clients of the recipe without one.
    *((changes, TAUGHT | changes, {"student"})
      for changes in ({}, {"forget": [2]}, {"architectures": BOTH})),
    # Temperatures reach what learns probabilities.
    *((TAUGHT | {"distillation": transfer}, TAUGHT | {"distillation": transfer,
       "server": SERVER | setting}, {"student"} if transfer == "kl" else set())
      for transfer, setting in product(("kl", "l1", "fedet"), TEMPERATURES)),
]  # fmt: skip


def test_what_is_the_same_for_two_recipes_and_what_is_not():
    for one, other, expected in DIFFER:
        both = one_shot(**one), one_shot(**other)
        assert {name for name, of in IDS.items() if len(set(map(of, both))) == 2} == expected, (
            one, other,
        )  # fmt: skip
    assert "aggregator_fraction" not in data_files.clients_table(one_shot(**WHOLE)).job.settings
    mixed = one_shot(**TAUGHT_MIXED)
    assert shot.student_file(mixed).job.config.student.name == "cnn_small"


# --- heads in closed form -------------------------------------------------------------------------

CLOSED = {"distillation": "closed_form", "model": "resnet8"}


def test_moments_depend_on_samples_and_the_encoder_only():
    plain = shot.feature_moments(one_shot(**CLOSED), 0)
    for changes, reaches in (
        ({"distillation": {"closed_form": {"covariance": "diagonal"}}}, False),
        ({"forget": [1]}, False),
        ({"client": {**CLIENT, "epochs": 9}}, False),
        ({"aggregator": "averaging"}, False),
        ({"server": SERVER, "public": "cifar10"}, False),
        ({"local_fraction": 1.0, "aggregator": "averaging"}, True),
        ({"model": "resnet20"}, True),
        ({"seed": 1}, True),
        ({"partition": "iid"}, True),
        (STARTED, True),
    ):
        found = shot.feature_moments(one_shot(**CLOSED | changes), 0)
        assert (found != plain) == reaches, changes


def test_a_closed_form_reads_the_moments_of_members_and_trains_nobody():
    recipe = one_shot(**CLOSED, forget=[1])
    read = shot.closed_form_model.job(recipe).inputs
    assert numbers(read["moments"]) == [0, 2, 3]
    assert travelling_models(recipe) == [read["start"]]
    folder = f"results/distilled_models/{student_id(recipe)}"
    assert traffic_tables(recipe) == [f"{folder}/rounds.parquet"]
    assert student_id(recipe) == student_id(one_shot(**CLOSED, forget=[1], server=SERVER))


# --- clients --------------------------------------------------------------------------------------


def test_clients_of_an_ensemble_are_clients_that_train_alone():
    own = OneShot(aggregator_fraction=0.1, initialisation="own")
    whole = one_shot(aggregator="averaging", local_fraction=1.0)
    assert local_recipe(whole) == alone(federated(), 1, pooled=False)
    apart = alone(federated(), 1, pooled=False, own=own)
    assert apart == local_recipe(one_shot(initialisation="own"))
    assert alone(federated(), 1, pooled=True, own=own) == alone(federated(), 1, pooled=True)
    groups = {"global_models": 2, "architectures": ["cnn_small", "logistic_regression"]}
    assert alone(federated(**groups), 1, pooled=False).architectures == ()


def test_architectures_are_dealt_out_in_turn():
    recipe = one_shot(architectures=[SMALL, LINEAR], clients=5)
    names = [client_model(recipe, client).name for client in range(5)]
    assert names == [SMALL["name"], LINEAR["name"]] * 2 + [SMALL["name"]]
    assert names == [client_model(local_recipe(recipe), client).name for client in range(5)]


def test_clients_start_from_one_model_of_their_architecture_or_each_from_its_own():
    def starts(**changes):
        recipe = local_recipe(one_shot(**changes))
        return [unfederated.local_start(recipe, client) for client in (None, 0, 1, 2, 3)]

    common, own = starts(), starts(initialisation="own")
    assert len(set(common)) == 1
    assert len(set(own[1:])) == 4
    assert own[1] == common[1]
    mixed = starts(architectures=[SMALL, LINEAR])[1:]
    assert mixed[:2] == mixed[2:]
    assert mixed[0] != mixed[1]


def test_clients_and_a_student_of_their_architecture_start_from_what_was_trained_before():
    recipe = one_shot(**TAUGHT | STARTED)
    assert {unfederated.local_start(local_recipe(recipe), client) for client in range(4)} == {START}
    assert shot.student_start(recipe) == START
    for transfer in ("kl", "l1", "fedet"):
        student = shot.student_start(one_shot(**TAUGHT | {"distillation": transfer}))
        assert student == unfederated.local_start(local_recipe(one_shot()), 0)
    other = one_shot(**TAUGHT | STARTED, student="logistic_regression")
    assert "initial_models" in shot.student_start(other)


def test_forgotten_clients_are_no_members_and_nobody_trains_anew():
    recipe = one_shot(forget=[2, 0])
    assert members(recipe) == [1, 3]
    assert numbers(unfederated.members_logits(recipe, "test")) == [1, 3]
    assert aggregator_id(recipe) == aggregator_id(one_shot(forget=[0, 2, 2]))
    assert "-mlp-without_0_2-seed0-" in aggregator_id(recipe)
    assert local_recipe(recipe) == local_recipe(one_shot())
    many = aggregator_id(one_shot(clients=300, partition="iid", forget=list(range(0, 300, 2))))
    assert "-without_150_clients-" in many
    assert len(many) < 120


# --- what is read ---------------------------------------------------------------------------------


def test_images_are_whole_sets_or_training_samples_of_a_role():
    recipe = local_recipe(one_shot())
    files = {name: name for name in ("test", "test_own", "held_out", "server_validation")}
    for images, name in (files | {"validation": "train", "aggregator": "train"}).items():
        expected = data_files.data_file(recipe.data, name)
        assert data_files.samples_file(recipe, images) == expected, images
    other = data_files.samples_file(recipe, "svhn-1234")
    assert other == "results/data/svhn-1234/train.safetensors"


def test_an_aggregator_reads_what_it_is_fitted_to():
    best, largest = ({"members": {name: {"count": 2}}} for name in ("best", "largest"))
    for changes, images in (
        ({"aggregator": "averaging"}, []),
        ({"aggregator": "weighted"}, []),
        ({"aggregator": "voting"}, ["aggregator"]),
        ({}, ["aggregator"]),
        (best, ["aggregator", "validation"]),
        ({"aggregator": "averaging"} | best, ["validation"]),
        ({"aggregator": "averaging"} | largest, []),
    ):
        inputs = lists_of(shot.aggregator.job(one_shot(**changes)).inputs).values()
        read = [path for paths in inputs for path in paths]
        logits = [path.rpartition("-")[2] for path in read if "/logits/" in path]
        assert sorted(logits) == sorted(f"{name}.safetensors" for name in images * 4), changes
        assert not [path for path in read if "test" in path.rpartition("/")[2]], changes


# --- quantised models -----------------------------------------------------------------------------


def test_each_precision_has_its_own_logits_of_the_same_models():
    plain, rough = one_shot(), one_shot(quantisation="int8")
    folder = local_folder(plain)
    assert local_recipe(plain) == local_recipe(rough)
    assert unfederated.members_quantised(plain) == []
    models = unfederated.members_quantised(rough)
    logits = unfederated.members_logits(rough, "test")
    precision = name_of(logits[0])
    assert precision.startswith("int8-")
    assert models == [f"{folder}/quantised/{precision}/client_{n}.safetensors" for n in range(4)]
    assert logits == [f"{folder}/logits/{precision}/client_{n}-test.safetensors" for n in range(4)]
    assert "/logits/fp32/" in unfederated.members_logits(plain, "test")[0]
    left = one_shot(quantisation="int8", forget=[1])
    assert unfederated.members_quantised(left) == [models[0], *models[2:]]


def test_clients_that_train_alone_are_scored_in_int8_beside_their_own_metrics():
    rough = OneShot.model_validate({"aggregator_fraction": 0.1, "quantisation": "int8"})
    plain, quantised = (
        alone(federated(), 1, pooled=False, own=own)
        for own in (OneShot(aggregator_fraction=0.1), rough)
    )
    assert unfederated.local_folder(plain) == unfederated.local_folder(quantised)
    assert unquantised(quantised) == plain == local_recipe(one_shot())
    assert unfederated.models_in_precision(plain) == unfederated.local_models(quantised)
    models = unfederated.models_in_precision(quantised)
    assert models == unfederated.members_quantised(one_shot(quantisation="int8"))
    for client, read in ((None, models), (3, [models[3]])):
        exact, scores = (
            unfederated.local_metrics_file(one, "test", 1, client) for one in (plain, quantised)
        )
        assert scores == exact.replace("/metrics/fp32/", f"/metrics/{name_of(models[0])}/")
        assert scores.job.inputs["models"] == read
    assert alone(federated(), 1, pooled=True, own=rough) == alone(federated(), 1, pooled=True)


# --- generated images -----------------------------------------------------------------------------

GENERATING = {"generator": "cvae", "public": "generated", "aggregator": "averaging",
              "server": SERVER, "distillation": "labels"}  # fmt: skip


def generating(**changes):
    return one_shot(**GENERATING | changes)


def generated_ids(recipe):
    """Return the folders of generators, of images, and of who learns their labels."""
    files = client_generators(recipe)[0], generated_images(recipe)
    return (*(file.split("/")[2] for file in files), student_id(recipe))


def test_what_reaches_generators_images_and_who_learns_their_labels():
    for changes, reached in (
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
    ):
        ids = generated_ids(generating()), generated_ids(generating(**changes))
        assert tuple(one != other for one, other in zip(*ids, strict=True)) == reached, changes
    left = client_generators(generating(forget=[1]))
    assert numbers(left) == [0, 2, 3]
    assert left[0] == client_generators(generating())[0]


def test_who_learns_labels_reads_no_model_of_a_client():
    recipe, from_logits = generating(), generating(distillation="kl")
    folder = f"results/generated/{generated_ids(recipe)[1]}"
    read = lists_of(shot.distilled_model.job(recipe).inputs)
    assert not {"aggregator", "logits"} & set(read)
    assert read["public"] == [f"{folder}/train.safetensors"]
    assert traffic_tables(recipe) == [f"{folder}/rounds.parquet"]
    assert travelling_models(recipe) == client_generators(recipe)
    assert len(traffic_tables(from_logits)) == 2
    (first, *_) = lists_of(shot.distilled_model.job(from_logits).inputs)["logits"]
    assert first.endswith(f"client_0-generated.{generated_ids(recipe)[1]}.safetensors")


# --- images that the server generates against the ensemble ----------------------------------------

EPOCHS = {"epochs": 2, "batch_size": 8, "learning_rate": 0.1, "temperature": 2.0}
BOOSTED = {"generator": "coboosting", "distillation": "cotrained", "server": EPOCHS}


def boosted(**changes):
    return generating(**BOOSTED | changes)


def test_what_reaches_images_against_an_ensemble():
    for changes, reached in (
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
    ):
        found = generated_images(boosted(**changes))
        assert (found != generated_images(boosted())) == reached, changes


def test_only_clients_models_travel_for_images_against_an_ensemble():
    for distillation in ("cotrained", "labels", "kl"):
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
