"""Names and digests: what they depend on, and that they stay what they are."""

import json
import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest
import yaml
from pydantic import BaseModel
from tests.shared.settings import CLIENT, federated

from fedstage import settings as package
from fedstage.plan import data_files, unfederated
from fedstage.plan.graph import name_of
from fedstage.plan.one_shot_sharing import alone
from fedstage.plan.training_folder import owners, training_id
from fedstage.protocol.digests import SCHEMA_VERSION, as_json, canonical
from fedstage.settings.base import Settings, subclasses
from fedstage.settings.data import Digits, ParquetData
from fedstage.settings.recipes import LocalRecipe, Recipe


def data_id(data):
    return name_of(data_files.data_file(data, "train"))


def local_id(recipe):
    return name_of(unfederated.local_models(recipe)[0])


def partition_id(recipe):
    return name_of(data_files.clients_table(recipe))


def participation_id(recipe):
    return name_of(data_files.participation_table(recipe, 1))


SERVER = {"steps": 20, "batch_size": 16, "learning_rate": 0.01}
BASE = federated(clients=10, partition={"dirichlet": {"alpha": 0.1}}, participants=8)
DISTILLED = {"ensemble": "clients", "global": "basic", "server": SERVER}
START = "results/distilled_models/a/model.safetensors"


def recipe(**changes):
    return Recipe.model_validate({**BASE, **changes})


def distilled_recipe(**changes):
    return recipe(**{**DISTILLED, **changes})


# --- which setting of a run reaches which name ----------------------------------------------------

IDS = {
    "data": lambda recipe: data_id(recipe.data),
    "partition": partition_id,
    "participation": participation_id,
    "initial": lambda recipe: name_of(
        data_files.initial_weights(recipe.data, recipe.model, recipe.seed, 0)
    ),
    "taught": training_id,
    "untaught": lambda recipe: training_id(owners(recipe)[1]),
    "alone": lambda recipe: local_id(alone(recipe, 3, pooled=False)),
    "pooled": lambda recipe: local_id(alone(recipe, 3, pooled=True)),
}
LOCAL = {"alone", "pooled"}
ROUNDS = {"taught", "untaught"}
SERVED = {"global_models": 3, "server_model": True}
HEADED = {"model": {"cnn_small": {"head": {}}}}
GENERATED = {"generator": "fedftg", "public": "generated"}
UNIFORM = {"aggregation": {"weights": "uniform"}}
#: Each field of a run, a changed value, and the ids that must change with it; no other may. Some
#: need settings beside them.
REACH = {
    "data": ({"digits": {"test": 300}}, {"data", "partition", "initial", *ROUNDS, *LOCAL}),
    "clients": (20, {"partition", "participation", *ROUNDS, *LOCAL}),
    "partition": ("iid", {"partition", *ROUNDS, *LOCAL}),
    "validation": (0.1, {"partition", *ROUNDS, *LOCAL}),
    "core": ({"samples": "share"}, {"partition", *ROUNDS, *LOCAL}),
    "participants": (7, {"participation", *ROUNDS}),
    "participation": ("by_samples", {"participation", *ROUNDS}),
    "staleness": ({"cyclic": {"delays": [0, 1]}}, {"participation", *ROUNDS}),
    "withdraw_stale": (True, {"participation", *ROUNDS}, {"staleness": "never"}),
    "model": ("logistic_regression", {"initial", *ROUNDS, *LOCAL}),
    "start": (START, {*ROUNDS, *LOCAL}),
    "start_of": ("server", ROUNDS, SERVED | {"start": START}),
    "global_models": (2, ROUNDS),
    "architectures": (["cnn_small", "resnet8"], ROUNDS, {"global_models": 2}),
    "client_groups": ("drawn", {"participation", *ROUNDS}, {"global_models": 2}),
    "server_model": (True, ROUNDS, {"global_models": 2}),
    "head_sharing": (True, {"taught"}, SERVED | HEADED),
    "local": ("fedprox", ROUNDS),
    "client": ({**CLIENT, "momentum": 0.5}, {*ROUNDS, *LOCAL}),
    "personal": ("head", ROUNDS, {"global": None}),
    "compression": ("stc", ROUNDS, {"global": None}),
    "aggregation": ({"weights": "uniform"}, ROUNDS),
    "privacy": ({"client": {"clip": 0.5, "noise": 1.0, "delta": 0.01}}, {*ROUNDS, *LOCAL},
                UNIFORM | {"ensemble": "aggregated"}),
    "ensemble": ("aggregated", {"taught"}),
    "global": ({"basic": {"warm_up": 1}}, {"taught"}),
    "distillation": ("l1", {"taught"}),
    "server": ({**SERVER, "temperature": 2.0}, {"taught"}),
    "public": ({"digits": {"split_seed": 4}}, {"taught"}),
    "generator": ({"fedftg": {"diversity": 2.0}}, {"taught"}, GENERATED),
    "on_divergence": ("drop", ROUNDS),
    "numerics": ({"threads": 2}, {*ROUNDS, *LOCAL}),
    "seed": (1, {"partition", "participation", "initial", *ROUNDS, *LOCAL}),
}  # fmt: skip


def ids_that_differ(one, other):
    return {name for name, of in IDS.items() if of(one) != of(other)}


def test_a_changed_setting_changes_the_ids_that_it_reaches_and_no_other():
    assert set(REACH) == {field.alias or name for name, field in Recipe.model_fields.items()}
    for field, (value, expected, *beside) in REACH.items():
        base = beside[0] if beside else {}
        before, after = distilled_recipe(**base), distilled_recipe(**base | {field: value})
        assert ids_that_differ(before, after) == expected, field


# --- digests --------------------------------------------------------------------------------------


def reversed_keys(content):
    if isinstance(content, dict):
        return {key: reversed_keys(content[key]) for key in reversed(content)}
    return content


def test_settings_that_are_written_in_other_ways_have_the_same_ids():
    settings = distilled_recipe(global_models=2)
    written_out = settings.model_dump(mode="json", by_alias=True)
    for raw in (written_out, reversed_keys(written_out), canonical(settings)):
        other = Recipe.model_validate(raw)
        assert other == settings
        assert as_json(canonical(other)) == as_json(canonical(settings))
        assert not ids_that_differ(settings, other)
    full = recipe(data={"name": "digits"}, partition={"name": "dirichlet", "alpha": 0.1},
                model={"cnn_small": None}, local={"name": "fedavg"})  # fmt: skip
    assert not ids_that_differ(full, recipe())
    local = alone(recipe(), 5, pooled=True)
    assert LocalRecipe.model_validate(canonical(local)) == local


def test_one_equals_one_point_zero():
    def recipes_of(one):
        focal = {"focal": {"gamma": one, "class_weights": [one] * 10}}
        yield {"partition": {"dirichlet": {"alpha": one}}}
        yield {"local": {"fedprox": {"mu": one}}}
        for of_client in ({"learning_rate": one}, {"clip_norm": one}, {"loss": focal}):
            yield {"client": CLIENT | of_client}

    for changes in zip(recipes_of(1), recipes_of(1.0), strict=True):
        # Not through `==` and the cache of ids, which take 1 for 1.0 anyway.
        assert len({as_json(canonical(recipe(**each))) for each in changes}) == 1, changes


# --- what digests stand for -----------------------------------------------------------------------

#: Settings that are in no digest: how often is scored, and what tables and figures show.
ELSEWHERE = ("claims", "config_file", "experiments", "runs", "scores", "simulation")


def settings_classes():
    """Return what configurations are made of."""
    names = [found.name for found in iter_modules(package.__path__, f"{package.__name__}.")]
    for name in names:
        import_module(name)
    kept = {name for name in names if name.rpartition(".")[2] not in ELSEWHERE}
    return {kind.__name__: kind for kind in subclasses(Settings) if kind.__module__ in kept}


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_every_setting_of_every_part_is_in_the_digest():
    classes = settings_classes()
    assert len(classes) > 130
    for kind in classes.values():
        for name, field in kind.model_fields.items():
            settings = kind.model_construct(**{name: "some other value"})
            found = canonical(settings)
            assert found[field.alias or name] == "some other value", (kind, name)


#: Ids of the first experiments, and the defaults that they leave out, in `defaults.yaml`.
PINNED_VERSION = 2
PINNED_IDS = [
    "digits-a3de875cbc",
    "digits-dirichlet0.1-seed0-53f70dec4d",
    "8_of_10-seed0",
    "digits-cnn_small-seed0-0ba5ac89ed",
    "digits-dirichlet0.1-cnn_small-fedavg-seed0-cb7c856a9f",
    "digits-dirichlet0.1-cnn_small-fedavg-K2-designated-seed0-6d07495a1f",
    "digits-dirichlet0.1-cnn_small-alone-seed0-6ff62db61e",
    "digits-dirichlet0.1-cnn_small-pooled-seed0-cc44ede08c",
]


def all_defaults():
    """Return the defaults of each class that it defines or redefines."""
    found = {}
    for kind, settings in settings_classes().items():
        for name, field in settings.model_fields.items():
            default = field.default
            inherited = settings.__base__.__dict__.get("__pydantic_fields__", {}).get(name)
            if field.is_required() or (inherited is not None and inherited.default == default):
                continue
            content = default.model_dump() if isinstance(default, BaseModel) else default
            found.setdefault(kind, {})[name] = json.loads(json.dumps(content))
    return found


def test_defaults_and_schema_version_are_pinned_together():
    pinned = yaml.safe_load(Path(__file__).with_name("defaults.yaml").read_text("utf-8"))
    assert (SCHEMA_VERSION, all_defaults()) == (PINNED_VERSION, pinned), (
        "A default is left out of digests: with another default, files that are there already "
        "would be taken for what they are not. Where a default changed, raise "
        "SCHEMA_VERSION in protocol/digests.py, then pin the new version here and the new defaults "
        "in defaults.yaml. Only a new field, whose default is what was done before it, may be "
        "pinned under the old version, or one that is never left out, as `dropout` (test_dropout)."
    )


def test_ids_do_not_change_between_versions_of_python_and_packages():
    full = distilled_recipe(global_models=2, **{"global": "designated"})
    assert SCHEMA_VERSION == PINNED_VERSION, "pin the ids of the new schema version above"
    assert [
        data_id(full.data),
        partition_id(full),
        participation_id(full),
        name_of(data_files.initial_weights(full.data, full.model, full.seed, 0)),
        training_id(recipe()),
        training_id(full),
        local_id(alone(full, 8, pooled=False)),
        local_id(alone(full, 8, pooled=True)),
    ] == PINNED_IDS, "an id changed: results that are there would be made anew under other names"


# --- names ----------------------------------------------------------------------------------------


def test_names_of_folders_need_no_quotes_in_a_shell_and_no_care_in_a_wildcard():
    for folder in ("a/b", "../a", "my data", "a{b}", "a;b", "a'b", "ä", ".", "*"):
        settings = recipe(data={"parquet": {"folder": folder}})
        for name in (data_id(settings.data), partition_id(settings), training_id(settings)):
            assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name)
    one, other = (ParquetData(name="parquet", folder=folder) for folder in ("a/b", "a_b"))
    assert data_id(one) != data_id(other)  # though their names read the same
    assert data_id(Digits(name="digits", split_seed=1)) != data_id(recipe().data)


# --- plans of participants ------------------------------------------------------------------------


def test_plans_are_named_after_all_that_determines_them():
    drawn = {"global_models": 4, "client_groups": "drawn"}
    by_samples = drawn | {"participation": "by_samples"}
    stragglers = {"staleness": {"cyclic": {"delays": [0, 1]}}}
    for changes, name in (
        ({}, "seed0"),
        ({"seed": 3}, "seed3"),
        (drawn, "4_groups-seed0"),
        (drawn | {"server_model": True}, "3_groups-seed0"),
        ({"client_groups": "drawn"}, "seed0"),  # from a single group nobody is drawn
        (drawn | {"global_models": 2, "server_model": True}, "seed0"),
        (by_samples, "4_groups-by_samples-seed0-DIGEST"),
        ({"staleness": "never"}, "never-seed0-DIGEST"),
        (stragglers, "cyclic-seed0-DIGEST"),
        (stragglers | {"withdraw_stale": True}, "cyclic_withdrawn-seed0-DIGEST"),
        ({"staleness": "never", "participation": "in_turn"}, "in_turn-never-seed0-DIGEST"),
        ({"staleness": {"cyclic": {"delays": [0, 0]}}, "withdraw_stale": True}, "seed0"),
    ):
        found = participation_id(recipe(**changes))
        assert re.fullmatch(f"8_of_10-{name}".replace("DIGEST", "[0-9a-f]{10}"), found), changes
    for one, other in (
        (by_samples, {"partition": "iid"}),
        (stragglers, {"staleness": {"cyclic": {"delays": [0, 2]}}}),
    ):
        assert participation_id(recipe(**one)) != participation_id(recipe(**one | other))
    # In blocks, which do not depend on the number of rounds.
    for round_, rounds in ((1, "0001-0100"), (100, "0001-0100"), (101, "0101-0200"),
                           (9900, "9801-9900")):  # fmt: skip
        path = data_files.participation_table(recipe(), round_)
        assert path == f"results/participation/8_of_10-seed0/rounds_{rounds}.parquet"


# --- the same without a federation ----------------------------------------------------------------


def test_alone_a_client_trains_as_long_as_in_all_rounds_together():
    client = {**CLIENT, "epochs": 3, "round_decay": 0.9, "momentum": 0.5, "schedule": "cosine"}
    settings = recipe(client=client, validation=0.2, seed=5)
    local = alone(settings, 7, pooled=False)
    assert (local.client.epochs, local.client.steps, local.pooled) == (21, None, False)
    assert (local.client.momentum, local.client.schedule.name) == (0.5, "cosine")
    for name in ("data", "clients", "partition", "validation", "model", "seed"):
        assert getattr(local, name) == getattr(settings, name), name
    assert partition_id(local) == partition_id(settings)
    # There are no rounds in which anything decays or goes on.
    assert local.client.round_decay == 1.0
    steps = {"steps": 11, "batch_size": 4, "learning_rate": 0.1}
    long = [alone(recipe(client=steps | {"batches": how}, participants=10), 4, pooled=True)
            for how in ("anew", "continued")]  # fmt: skip
    assert long[0] == long[1]
    assert (long[0].client.epochs, long[0].client.steps, long[0].pooled) == (None, 44, True)
    twice = recipe(client={**CLIENT, "epochs": 2})
    assert local_id(alone(twice, 3, pooled=False)) == local_id(alone(recipe(), 6, pooled=False))
    ids = {local_id(alone(recipe(), rounds, pooled=p)) for rounds in (1, 2) for p in (True, False)}
    assert len(ids) == 4
