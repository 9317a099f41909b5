"""Which settings of a one-shot recipe reach which of its files."""

from tests.shared import settings
from tests.shared.graph import lists_of

from fedstage.plan import data_files, unfederated
from fedstage.plan import one_shot as shot
from fedstage.plan.graph import name_of
from fedstage.plan.one_shot import (
    client_generator,
    generated_images,
    student_file,
    traffic_tables,
    travelling_models,
)
from fedstage.plan.one_shot_sharing import local_recipe
from fedstage.protocol.one_shot import members
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import Recipe

CLIENT = {"epochs": 2, "batch_size": 16, "learning_rate": 0.05}
SERVER = {"steps": 3, "batch_size": 8, "learning_rate": 0.1}
#: What recipes of rounds have, too.
SHARED = settings.one_shot(
    data={"digits": {"server_validation": 20}},
    partition={"dirichlet": {"alpha": 0.1}},
    validation=0.1,
    client=CLIENT,
)
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
    return unfederated.local_models(local_recipe(recipe))[0].job.folder


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
    "public": ({"digits": {"split_seed": 4}}, {"student"}),
    # Only where public = generated anybody reads it; see below.
    "generator": ("cvae", set(), {"distillation": None}),
    "privacy": ({"example": {"clip": 1.0, "noise": 1.0}}, TRAINED),
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


# --- heads in closed form -------------------------------------------------------------------------

CLOSED = {"distillation": "closed_form", "model": "resnet8"}


def test_moments_depend_on_samples_and_the_encoder_only():
    plain = shot.feature_moments(one_shot(**CLOSED), 0)
    for changes, reaches in (
        ({"distillation": {"closed_form": {"covariance": "diagonal"}}}, False),
        ({"forget": [1]}, False),
        ({"client": {**CLIENT, "epochs": 9}}, False),
        ({"aggregator": "averaging"}, False),
        ({"server": SERVER, "public": {"digits": {"split_seed": 4}}}, False),
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
    assert travelling_models(recipe) == [student_file(recipe)]
    folder = f"results/distilled_models/{student_id(recipe)}"
    assert traffic_tables(recipe) == [f"{folder}/rounds.parquet"]
    assert student_id(recipe) == student_id(one_shot(**CLOSED, forget=[1], server=SERVER))


# --- clients --------------------------------------------------------------------------------------


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


# --- generated images -----------------------------------------------------------------------------

GENERATING = {"generator": "cvae", "public": "generated", "aggregator": "averaging",
              "server": SERVER, "distillation": "labels"}  # fmt: skip


def generating(**changes):
    return one_shot(**GENERATING | changes)


def generated_ids(recipe):
    """Return the folders of generators, of images, and of who learns their labels."""
    files = client_generator(recipe, 0), generated_images(recipe)
    return (*(file.split("/")[2] for file in files), student_id(recipe))


def test_who_learns_labels_reads_no_model_of_a_client():
    recipe, from_logits = generating(), generating(distillation="kl")
    folder = f"results/generated/{generated_ids(recipe)[1]}"
    read = lists_of(shot.distilled_model.job(recipe).inputs)
    assert not {"aggregator", "logits"} & set(read)
    assert read["public"] == [f"{folder}/train.safetensors"]
    assert traffic_tables(recipe) == [f"{folder}/rounds.parquet"]
    assert travelling_models(recipe) == [student_file(recipe)]  # not the decoders that they send
    assert len(traffic_tables(from_logits)) == 2
    (first, *_) = lists_of(shot.distilled_model.job(from_logits).inputs)["logits"]
    assert first.endswith(f"client_0-generated.{generated_ids(recipe)[1]}.safetensors")
