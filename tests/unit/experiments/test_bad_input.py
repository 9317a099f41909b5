"""Bad configurations: any YAML gives valid runs, or one line for each fault, and never a traceback.

What is wrong by itself (keys, names, types, bounds) is drawn from the classes of the settings; what
does not go together is in a table of combinations, each of them once.
"""

import copy
from math import inf, nan
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedstage.errors import FedstageError
from fedstage.experiments.catalogue import load_catalogue
from fedstage.settings.base import Settings, with_plugins
from fedstage.settings.config_file import Execution
from fedstage.settings.experiments import Communication, Scale, Table
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import Recipe
from fedstage.settings.runs import RunLength

METHODS = "fedavg: {local: fedavg}\nfeddf: {ensemble: clients, global: basic}\n"
BASE = {
    "data": "digits",
    "clients": 10,
    "partition": {"dirichlet": {"alpha": 0.1}},
    "validation": 0.1,
    "participants": 4,
    "model": "cnn_small",
    "rounds": 8,
    "client": {"epochs": 1, "batch_size": 16, "learning_rate": 0.05},
    "server": {"steps": 20, "batch_size": 16, "learning_rate": 0.01},
    "seed": 0,
}
#: Words of the libraries underneath, which tell a person nothing.
JARGON = (
    "discriminator", "instance of", "extract", "after validation", "<class", "Traceback", "tuple",
    "dictionary", "union", "constrained",
)  # fmt: skip


@pytest.fixture(scope="module")
def workflow(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workflow")
    (folder / "methods.yaml").write_text(METHODS)
    return folder


def told(workflow, changes, experiment=None, config=None):
    """Return the lines about the faults of a method with these settings, none if it is good."""
    own = {"title": "E", "base": BASE, "methods": {"own": changes}, "grid": {"method": ["own"]}}
    own["scales"] = {"default": None}
    raw = {"targets": ["e"], "experiments": {"e": {**own, **(experiment or {})}}, **(config or {})}
    try:
        load_catalogue(copy.deepcopy(raw), workflow)
    except FedstageError as error:
        return str(error).split("\n")
    return []


def is_a_fault(line, *keys):
    assert line.startswith(("config.yaml: ", "e/", "e: ")), line
    assert [word for word in JARGON if word in line] == [], line
    assert line.isprintable()
    assert not keys or any(key in line for key in keys), line


# --- any YAML -------------------------------------------------------------------------------------

#: Values that YAML may give where something else is meant.
ANYTHING = st.sampled_from(
    [None, True, -1, 0, 2.5, nan, inf, 2**70, "", "a\nb", "1e-3", "nonsuch", [], [[1]], {},
     {"a": 1}, {"nonsuch": {"a": 1}}, {"iid": {}, "natural": {}}]
)  # fmt: skip
NUMBERS = {int: st.sampled_from([0, 1, 2, 3, 5, 8]), float: st.sampled_from([0.0, 0.1, 0.5, 1.0])}


def values(annotation: Any, depth: int = 3) -> st.SearchStrategy[Any]:
    """Return values in YAML for a type of a setting: most are allowed."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return values(inner[0], depth)
    if origin is Literal:
        return st.sampled_from(inner)
    if origin in (Union, UnionType):
        return st.one_of([values(one, depth) for one in with_plugins(inner)])
    if origin in (list, tuple):
        return st.lists(values(inner[0], depth), max_size=3)
    if origin is dict:
        return st.dictionaries(st.sampled_from(["method", "seed"]), values(inner[1], depth))
    if annotation in (NoneType, bool):
        return st.sampled_from([None] if annotation is NoneType else [True, False])
    if isinstance(annotation, type) and issubclass(annotation, Settings):
        return mappings(annotation, depth - 1) if depth else st.just({})
    return NUMBERS.get(annotation, st.sampled_from(["a", "label", "nonsuch"]))


@st.composite
def mappings(draw: Any, kind: type[Settings], depth: int = 3, most: int = 2) -> dict[str, Any]:
    """Return settings of a class: those that it needs, a few others and, rarely, what is wrong."""
    fields = kind.model_fields
    needed = [name for name, field in fields.items() if field.is_required()]
    drawn = draw(st.lists(st.sampled_from(sorted(fields)), max_size=most, unique=True))
    chosen = {}
    for name in [*needed, *drawn] if depth < 3 else drawn:
        field = fields[name]
        wrong = draw(st.integers(0, 19)) == 0
        value = draw(ANYTHING if wrong else values(field.annotation, depth))
        chosen[field.alias or name] = value
    if draw(st.integers(0, 19)) == 0:
        chosen["nonsuch"] = 1
    return chosen


def any_of(*kinds):
    """Return settings of some of these classes together."""
    both = st.tuples(*(mappings(kind, most=most) for kind, most in kinds))
    return both.map(lambda parts: {key: value for part in parts for key, value in part.items()})


RUNS = any_of((Recipe, 3), (RunLength, 1))
ONE_SHOT = any_of((OneShotRecipe, 3), (RunLength, 1))
SOME = settings(
    derandomize=True, deadline=None, database=None, max_examples=150,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@SOME
@given(RUNS)
def test_any_settings_of_rounds_are_valid_or_told_in_a_line_for_each_fault(workflow, changes):
    for line in told(workflow, changes):
        is_a_fault(line)


@SOME
@given(ONE_SHOT)
def test_any_settings_of_one_shot_are_valid_or_told_in_a_line_for_each_fault(workflow, changes):
    one_shot = {"training": "one_shot", "rounds": 1, "aggregator_fraction": 0.1}
    for line in told(workflow, {**changes, **one_shot}):
        is_a_fault(line)


PARTS = {"table": Table, "communication": Communication, "scales": Scale, "execution": Execution}


@settings(SOME, max_examples=60)
@given(st.sampled_from(sorted(PARTS)).flatmap(lambda key: st.tuples(st.just(key), part(key))))
def test_any_settings_of_an_experiment_are_valid_or_told_in_a_line(workflow, drawn):
    key, own = drawn
    experiment = {} if key == "execution" else {key: {"default": own} if key == "scales" else own}
    config = {key: own} if key == "execution" else {}
    for line in told(workflow, {}, experiment, config):
        is_a_fault(line)


def part(key):
    return st.one_of(ANYTHING, mappings(PARTS[key]))


#: A key with a valid value, as deep as settings go.
NAMES = ("cosine", "dirichlet", "digits", "cnn_small")
PATHS = (
    "clients", "rounds", "seed", "validation", "data.digits.test", "model.cnn_small.width",
    "client.learning_rate", "client.schedule.cosine.final", "partition.dirichlet.alpha",
    "server.buffer.weight",
)  # fmt: skip


@settings(SOME, max_examples=100)
@given(st.sampled_from(PATHS), st.sampled_from([True, -(2**70), nan, "x", [1], {"a": [1]}]))
def test_a_value_of_another_type_or_out_of_bounds_is_told_with_its_key(workflow, path, value):
    changes: Any = value
    for name in reversed(path.split(".")):
        changes = {name: changes}
    key = ".".join(name for name in path.split(".") if name not in NAMES)
    lines = told(workflow, changes)
    assert lines, "must be refused"
    for line in lines:
        is_a_fault(line, f"{key} = ", f"{key}: ", f"{key}.")


@pytest.mark.parametrize("path", ["clents", "client.epoch", "model.widht", "data.tests"])
def test_an_unknown_key_is_told_with_the_nearest_one(workflow, path):
    changes: Any = 1
    for name in reversed(path.split(".")):
        changes = {name: changes}
    (line, *_) = told(workflow, changes)
    assert f"{path} = 1: unknown key; did you mean '" in line


def test_a_key_of_a_part_is_found_from_outside_and_others_are_listed(workflow):
    (line,) = told(workflow, {"epochs": 2})
    assert line.endswith("epochs = 2: unknown key; did you mean 'client.epochs'?")
    (line,) = told(workflow, {"zzz": 2})
    assert "zzz = 2: unknown key; use one of aggregat" in line


@pytest.mark.parametrize("key", ["data", "model", "partition", "local", "compression", "evaluate"])
def test_an_unknown_name_is_told_with_the_known_ones(workflow, key):
    (line,) = told(workflow, {key: "nonsuch"})
    assert f"{key} = 'nonsuch': unknown; use '" in line


def test_each_fault_has_a_line_of_its_own(workflow):
    lines = told(workflow, {"clients": 0, "validation": 2.0, "model": "bert2"})
    assert sorted(line.partition("method own: ")[2].split()[0] for line in lines) == [
        "clients", "model", "validation",
    ]  # fmt: skip


# --- names, axes and files ------------------------------------------------------------------------

GRID = {"method": ["fedavg"]}
EXPERIMENTS = [
    ({"grid": {"method": ["fedsgd"]}}, "method = 'fedsgd': unknown"),
    ({"grid": {"method": ["fedavg", "fedavg"]}}, "grid.method: 'fedavg' is listed twice"),
    ({"grid": {**GRID, "seed": [0, 1, 0]}}, "grid.seed: 0 is listed twice"),
    ({"grid": {**GRID, "seed": {"one": 1}}}, "grid.seed: must be a list"),
    ({"grid": {**GRID, "partition.alpha": [0.1, 1.0]}}, "table: partition.alpha"),
    ({"table": {"rows": ["metod"]}}, "table: 'metod': must be one of"),
    ({"table": {"over": "rounds"}}, "table.over = 'rounds'"),
    ({"table": {"baseline": "fedav"}}, "table.baseline = 'fedav': use one of"),
    ({"table": {"metric": "round_s"}}, "table.metric = 'round_s': needs results"),
    ({"implies": {"data": {"digits": {}}}}, "implies.data: must be an axis"),
    ({"methods": {"own": {"lokal": 1}}}, "methods.own: lokal = 1: unknown key"),
    ({"methods": {"feddf": {"label": "FedAvg"}, "fedavg": {"label": "FedAvg"}}}, "label = "),
    ({"methods": {"feddf": {"like": "feddf"}}}, "like = 'feddf': is like itself"),
    ({"methods": {"feddf": {"start": "feddf"}}}, "start: method = 'feddf': starts from itself"),
    ({"methods": {"feddf": {"start": {"method": "fedavg", "clients": 9}}}}, "clients = 9"),
    ({"methods": {"feddf": {"choose": {"among": {"seed": [1]}}, "validation": 0.0}}}, "choose"),
    ({"scales": {"default": {"cells": [{"at": {"method": "x"}, "settings": {}}]}}}, "cells.0.at"),
    ({"scales": {"v1.0": None}}, "letters, digits, _ and -"),
    ({"title": "a\nb"}, "must be one line"),
    ({"like": "nonsuch"}, "like = 'nonsuch': unknown"),
]


@pytest.mark.parametrize(("changes", "text"), EXPERIMENTS, ids=lambda value: str(value)[:50])
def test_names_and_axes_of_an_experiment_must_be_there_once(workflow, changes, text):
    (line,) = told(workflow, {}, {"methods": {}, "grid": {"method": ["fedavg", "feddf"]}} | changes)
    assert text in line


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("title: [a\nb: {", "not valid YAML"),
        ("title: F\nbase: {}\ntitle: G\n", "line 3: duplicate key 'title' (first used in line 1)"),
        ("- a\n", "must be a mapping"),
        ("", "must be a mapping"),
        ("title: \xe9".encode("latin-1"), "UTF-8"),
        ("title: A\nscales: {a: }\ngird: {}", "gird = {}: unknown key"),
    ],
    ids=["syntax", "twice", "list", "empty", "bytes", "key"],
)
@pytest.mark.parametrize("name", ["experiments/f.yaml", "methods.yaml"])
def test_a_file_that_cannot_be_read_is_named(tmp_path, name, content, text):
    (tmp_path / "experiments").mkdir()
    (tmp_path / "methods.yaml").write_text(METHODS)
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    lines = told(tmp_path, {})
    if name == "methods.yaml" and "gird" in str(content):
        text = "title = 'A': must be a mapping"
    assert text in lines[0]
    assert name in lines[0]


# --- what would give a wrong number or a false guarantee ------------------------------------------

ROUNDS = {"ensemble": "clients", "global": "basic"}
SHOT = {"training": "one_shot", "rounds": 1, "aggregator_fraction": 0.1}
PRIVATE = {
    "aggregation": {"weights": "uniform"},
    "privacy": {"client": {"clip": 1.0, "noise": 1.0}},
}
EXAMPLES = {"privacy": {"example": {"clip": 1.0, "noise": 1.0}}}
SECURE = {"secure": {"threshold": 3, "clip": 0.1, "most_samples": 9}}
BATCH = {"model": {"cnn_small": {"norm": "batch"}}}
STUDENT = {"ensemble": "aggregated", "global": "basic"}
TRAINED = {"aggregator": "mlp", "aggregator_training": {"federated": {"rounds": 2}}}
#: Beside the table of `fedstage.settings.compatibility`, which has a test of its own.
COMBINATIONS = [
    ({"participants": 11}, "participants = 11: at most clients"),
    ({"server_model": True}, "global_models = 1: at least 2"),
    ({"global_models": 5}, "participants = 4: at least global_models"),
    ({"participation": "poisson", "global_models": 2}, "global_models = 2: a single group"),
    ({"participation": "poisson", "staleness": "never"}, "staleness = 'never': must be none"),
    ({"architectures": ["cnn_small"], "global_models": 2}, "architectures: 1 of them"),
    ({"architectures": ["resnet8", "cnn_small"], "global_models": 2}, "architectures.0"),
    ({"model": {"cnn_small": {"more_outputs": 1}}}, "model.more_outputs = 1"),
    ({"client": {"steps": 3}}, "client: give either epochs or steps"),
    ({"client": {"steps": 3, "epochs": None, "batches": "continued"}}, "must be clients = 10"),
    ({"server": {"swa": {}, "moving_average": {}}}, "server: swa and moving_average: give one"),
    ({"server": {"swa": {"start": 20}}}, "server: swa.start = 20: at most"),
    ({"local": "moon", "model": "logistic_regression"}, "must be one that takes a head"),
    ({"aggregation": {"rule": {"krum": {"faulty": 9}}}}, "aggregation.rule = 'krum': needs 21"),
    ({"numerics": {"precision": "tf32"}}, "precision = tf32: only for device = cuda"),
    ({"data": "heart_disease"}, "model = 'cnn_small': takes images"),
    ({"data": "ag_news", "model": {"lstm": {"vocabulary": 9}}}, "model.vocabulary = 9"),
    ({"data": {"cifar10": {"division": [7, 1, 2], "held_out": 9}}}, "held_out = 9: not with"),
    ({"data": {"table": {"folder": "a", "features": ["label"]}}}, "features: 'label'"),
    ({"partition": "natural"}, "partition = natural: data = digits has no column"),
    ({**ROUNDS, "data": {"digits": {"held_out": 0}}}, "data.held_out = 0"),
    ({**ROUNDS, "public": "core"}, "core = null"),
    ({**ROUNDS, "public": "generated"}, "generator = null"),
    ({**ROUNDS, "data": {"digits": {"held_out_augmentation": "flip"}}, "public": "digits"},
     "data.held_out_augmentation"),
    ({**ROUNDS, "server": {"factor_transfer": {}}}, "server.factor_transfer needs"),
    ({"local": "gkt", "ensemble": None, "global_models": 2, "server_model": True},
     "model = 'cnn_small': must be resnet_upper"),
    ({"local": "digest", "ensemble": "clients", "global": "basic"}, "global: must be designated"),
    ({"local": "digest", "ensemble": "clients", "global_models": 2}, "client_groups = 'by_index'"),
    # guarantees
    ({"aggregation": {"secure": {**SECURE["secure"], "threshold": 2}}}, "secure.threshold = 2"),
    ({"aggregation": {"secure": {**SECURE["secure"], "bits": 31}}}, "aggregation.secure.bits = 31"),
    ({"aggregation": {**SECURE}, **BATCH}, "batch_norm = average: must be re_estimate"),
    ({"aggregation": {**SECURE}, **ROUNDS}, "aggregation.secure: stage"),
    ({"privacy": {}}, "privacy: give either client or example"),
    ({"privacy": {"client": {"clip": None, "noise": 1.0}}}, "clip = null: must be a number"),
    ({**PRIVATE, "aggregation": {}}, "aggregation.weights = 'samples': must be uniform"),
    ({**PRIVATE, "participation": "in_turn"}, "participation = 'in_turn': must be"),
    ({**PRIVATE, **BATCH}, "aggregation.batch_norm = 'average': must be re_estimate"),
    ({**PRIVATE, "privacy": {"client": {"clip": 1.0, "noise": 1.0, "delta": 0.1}}}, "delta = 0.1"),
    ({**PRIVATE, "evaluate": "clients"}, "evaluate = 'clients': must be global_model"),
    ({**PRIVATE, "start": "feddf"}, "start: must be null with privacy"),
    ({**PRIVATE, **ROUNDS}, "ensemble = 'clients': must be aggregated"),
    # Other options of a data set, or a folder inside the other, divide the same samples anew.
    ({**PRIVATE, **STUDENT, "public": "digits"}, "public = digits: has the source of data"),
    ({**PRIVATE, **STUDENT, "public": {"digits": {"test": 5, "split_seed": 4}}}, "has the source"),
    ({**PRIVATE, **STUDENT, "data": {"image_folder": {"folder": "scans", "image_size": 8}},
      "public": {"image_folder": {"folder": "./scans/train", "image_size": 8}}}, "has the source"),
    ({**PRIVATE, **STUDENT, "public": "core", "core": {"samples": "all"}}, "has the source"),
    ({**PRIVATE, "on_divergence": "drop"}, "on_divergence = drop: must be stop"),
    ({**EXAMPLES, "training": "alone"}, "privacy: must be null with training = alone"),
    ({**EXAMPLES, "training": "pooled"}, "privacy: must be null with training = pooled"),
    ({**SHOT, **PRIVATE}, "privacy.client: needs rounds"),
    ({**SHOT, **EXAMPLES, "distillation": "kl", "public": "digits"}, "has the source of data"),
    ({**EXAMPLES, **BATCH}, "model = cnn_small: must"),
    ({**EXAMPLES, "client": {"last_batch": "drop"}},
     "client.last_batch = 'drop'"),
    # what is scored
    ({"role": "validation", "validation": 0.0}, "validation = 0: role"),
    ({"role": "test_own"}, "role = 'test_own'"),
    ({"evaluate_client": 3}, "evaluate_client = 3: only for training = alone"),
    ({"evaluate": "split_model"}, "evaluate = 'split_model': only with local = gkt"),
    ({"local": "digest", "ensemble": "clients"}, "evaluate = 'global_model': nobody trains"),
    ({"training": "core"}, "core = null"),
    # one shot
    ({**SHOT, "rounds": 3}, "rounds = 3: training = one_shot has 1"),
    ({**SHOT, "local_fraction": 0.45}, "local_fraction = 0.45"),
    ({**SHOT, **TRAINED, "aggregator_fraction": 0.0}, "no client's model was trained on"),
    ({**SHOT, **TRAINED, "aggregator": "simplex"}, "must be mirror_descent"),
    ({**SHOT, "aggregator": "voting", "start": "fedavg"}, "start = "),
    ({**SHOT, "aggregator": "least_unknown"}, "unknown = null"),
    ({**SHOT, "aggregator": "fused_features"}, "aggregator = fused_features: needs prototypes"),
    ({**SHOT, "members": {"best": {"count": 3}}, "validation": 0.0}, "validation = 0: members"),
    ({**SHOT, "members": {"random": {"count": 11}}}, "members.count = 11"),
    ({**SHOT, "unknown": {"outliers": None}}, "attack: needs outliers"),
    ({**SHOT, "prototypes": {}}, "model = 'cnn_small': prototypes needs"),
    ({**SHOT, "distillation": "kl", "server": None}, "server = null"),
    ({**SHOT, "distillation": "kl", "public": "generated", "generator": "dense",
      "server": {"epochs": 2, "steps": None}}, "generator.batch_norm = 1.0"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "text"), COMBINATIONS, ids=lambda value: str(value)[:50])
def test_what_would_be_wrong_without_a_word_is_refused(workflow, changes, text):
    (line,) = told(workflow, changes)
    assert text in line, line
    is_a_fault(line)


def test_the_configuration_of_these_cases_is_good_without_its_fault(workflow):
    delta = {"privacy": {"client": {"clip": 1.0, "noise": 1.0, "delta": 0.01}}}
    good = [{}, ROUNDS, SHOT, {**SHOT, **TRAINED}, {**PRIVATE, **delta}, {"aggregation": SECURE}]
    assert [told(workflow, changes) for changes in good] == [[]] * len(good)
