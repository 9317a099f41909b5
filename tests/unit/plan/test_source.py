import ast
import json
import shutil
import subprocess
import sys
from itertools import count, product

import pytest

from fedstage.errors import FedstageError
from fedstage.plan import discriminators
from fedstage.plan import one_shot as shot
from fedstage.plan.generated import generated_images
from fedstage.plan.jobs import OF_ROUNDS
from fedstage.plan.members import parse_evaluated, parse_sampled
from fedstage.plan.source import (
    DECLARING,
    called,
    chosen_modules,
    classes_of,
    optional_modules,
    reachable,
    reached_by,
    source_of,
    stage_fingerprint,
)
from fedstage.plan.stages import STAGES
from fedstage.plan.syntax import PACKAGE, imports, module_digest, modules
from fedstage.plan.training import DISTILLATIONS
from fedstage.settings.base import Settings, choices, subclasses
from fedstage.settings.data import DataOption
from fedstage.settings.models import EfficientNet, InitialModel
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.partitions import PartitionSettings
from fedstage.settings.quantisation import Int8
from fedstage.settings.recipes import LocalRecipe, Recipe

SERVER = {"steps": 5, "batch_size": 32, "learning_rate": 0.05}
TEACHING = [stage.name for stage in DISTILLATIONS]
DISTILLED = {
    "global_models": 2,
    "ensemble": {"aggregated": {"checkpoints": 2}},
    "global": "designated",
    "server": SERVER,
}


def a_recipe(**changes):
    settings = {
        "data": {"digits": {"held_out": 100}},
        "clients": 4,
        "partition": {"dirichlet": {"alpha": 1.0}},
        "participants": 2,
        "model": "cnn_small",
        "client": {"epochs": 1, "batch_size": 32, "learning_rate": 0.05},
        "seed": 0,
    }
    return Recipe.model_validate(settings | changes)


def alone(recipe):
    shared = [name for name in LocalRecipe.model_fields if name in Recipe.model_fields]
    return LocalRecipe(**{name: getattr(recipe, name) for name in shared})


HEADED = {"cnn_small": {"head": {}}}
UPPER = "resnet_upper"
RECIPES = {
    "fedavg": a_recipe(),
    "fedprox": a_recipe(local="fedprox"),
    "scaffold": a_recipe(local="scaffold"),
    "fednova": a_recipe(local="fednova"),
    "focal": a_recipe(
        client={"epochs": 1, "batch_size": 32, "learning_rate": 0.05, "loss": "focal"}
    ),
    "adam": a_recipe(aggregation={"server_optimizer": "adam"}),
    "yogi": a_recipe(aggregation={"server_optimizer": "yogi"}),
    "sparse": a_recipe(compression="stc"),
    "resnet20": a_recipe(model="resnet20"),
    "wrn16_2": a_recipe(model="wrn16_2"),
    "iid": a_recipe(partition="iid"),
    "distilled": a_recipe(**DISTILLED),
    "taught_by_clients": a_recipe(**DISTILLED | {"ensemble": "clients"}),
    "bayesian": a_recipe(**DISTILLED | {"ensemble": "bayesian"}),
    "heads": a_recipe(
        **DISTILLED
        | {"model": HEADED, "global_models": 2, "server_model": True, "head_sharing": True}
    ),
    "features": a_recipe(
        local="gkt",
        model=UPPER,
        architectures=[UPPER, "resnet_lower"],
        global_models=2,
        server_model=True,
        server=SERVER,
    ),
    "averaged": a_recipe(**DISTILLED | {"server": SERVER | {"swa": {"every": 1}}}),
    "judged": a_recipe(
        **DISTILLED
        | {
            "data": {"digits": {"held_out": 100, "server_validation": 10}},
            "ensemble": "clients",
            "server": SERVER | {"drop_worst": "as_published", "early_stopping": {}},
        }
    ),
}


def one_shot(**changes):
    kept = ("data", "clients", "partition", "model", "client", "seed")
    settings = {name: getattr(RECIPES["fedavg"], name) for name in kept}
    return OneShotRecipe.model_validate(settings | {"aggregator_fraction": 0.1} | changes)


ROUNDS = {"federated": {"rounds": 2}}
YOGI = {"federated": {"rounds": 2, "server_optimizer": "yogi"}}
ONE_SHOT = {
    "averaging": one_shot(),
    "mlp": one_shot(aggregator="mlp", aggregator_training=ROUNDS),
    "mlp by yogi": one_shot(aggregator="mlp", aggregator_training=YOGI),
    "linear on a proxy": one_shot(
        data={"digits": {"server_validation": 10}},
        aggregator="linear",
        aggregator_training={"proxy": {"steps": 2}},
    ),
}
STUDENTS = {
    "fedkd": one_shot(
        data={"digits": {"held_out": 10}}, aggregator="weighted", distillation="l1", server=SERVER,
        student="resnet8",
    ),
    "fedet_os": one_shot(
        data={"digits": {"held_out": 10}}, aggregator="confidence", distillation="fedet",
        server=SERVER,
    ),
}  # fmt: skip
OF_IMAGES = {"public": "generated", "server": SERVER | {"steps": None, "epochs": 2}}
GENERATING = {
    "cvae": one_shot(generator="cvae", distillation="labels", **OF_IMAGES),
    "dense": one_shot(generator="dense", distillation="cotrained", model="resnet8", **OF_IMAGES),
    "coboosting": one_shot(generator="coboosting", distillation="cotrained", **OF_IMAGES),
}
ODDS = {"odds": a_recipe(**DISTILLED | {"ensemble": "odds"})}
#: The stages of discriminators, by whose odds votes are weighted.
OF_ODDS = ("public_generator", "client_discriminator", "client_odds")
CLOSED = {"closed": one_shot(distillation="closed_form", model="resnet8")}
#: The stages of heads in closed form.
OF_MOMENTS = ("feature_moments", "closed_form_model")
#: The stages that generate images, by who trains what generates them.
OF_GENERATORS = {"clients": ("client_generator", "generated"), "server": ("synthesised",)}
#: The stages of one-shot recipes, and of those with a student.
OF_ONE_SHOT = ("aggregator", "one_shot_evaluation")
OF_STUDENTS = ("distilled_model", "one_shot_evaluation")
DRAWN = ("gaussian_3", "dirichlet_3")
#: The stages that make of metrics what people read.
RESULTS = {
    "run_scores", "tables", "figures", "comparison", "sweep", "claims", "communication", "costs",
    "retention_summary", "report",
}  # fmt: skip


def reach(settings, stage, *more):
    """The modules and stages that a stage has of settings."""
    chosen = frozenset().union(*map(chosen_modules, (settings, *more)))
    return chosen, called(stage, settings)


def fingerprint(settings, stage, package, *more):
    classes = frozenset().union(*map(classes_of, (settings, *more)))
    return stage_fingerprint(stage, *reach(settings, stage, *more), classes, package)


def asked():
    """Yield stages, names of settings, and the settings whose fingerprints may differ."""
    others = {*OF_ONE_SHOT, *OF_STUDENTS, *OF_ODDS, *OF_MOMENTS}.union(*OF_GENERATORS.values())
    of_rounds = {stage.name: stage for stage in OF_ROUNDS}
    for stage in STAGES.keys() - others:
        alike = STAGES[stage].presents or stage in ("recipe", "dataset", "participation", "choice")
        for name in ["fedavg"] if alike else RECIPES:
            if stage not in of_rounds or of_rounds[stage].used(RECIPES[name]):
                yield stage, name, RECIPES[name]
    for stages, recipes in (
        (OF_ONE_SHOT, ONE_SHOT), (OF_STUDENTS, STUDENTS), (OF_MOMENTS[1:], CLOSED),
        (("distillation",), ODDS),
    ):  # fmt: skip
        yield from ((stage, name, recipes[name]) for stage in stages for name in recipes)
    for name, recipe in GENERATING.items():
        for stage in OF_GENERATORS[recipe.generator.trained_by]:
            yield stage, name, generated_images(recipe).job.config
    yield OF_MOMENTS[0], "closed", shot.feature_moments(CLOSED["closed"], 0).job.config
    for stage in OF_ODDS:
        yield stage, "odds", discriminators.client_odds(ODDS["odds"]).job.config
    for name in ("cifar10", {"parquet": {"folder": "x"}}):
        option = DataOption.model_validate({"data": name})
        yield "dataset", option.data.name, option


def jobs(package):
    """Fingerprints of all stages of recipes that differ in them, and of evaluated ensembles."""
    found = {
        ("distillation" if stage in TEACHING else stage, name): fingerprint(
            settings, stage, package
        )
        for stage, name, settings in asked()
    }
    for evaluated in ("clients", "aggregated_2"):
        more = parse_evaluated(evaluated)
        found["evaluation", evaluated] = fingerprint(RECIPES["fedavg"], "evaluation", package, more)
    for name, members in product(("fedavg", "distilled"), ("clients", "aggregated", *DRAWN)):
        more = filter(None, [parse_sampled(members)])
        digits = fingerprint(RECIPES[name], "logits", package, *more)
        found["logits", f"{name} {members}"] = digits
    return found


def copied(folder):
    """A copy of the package in a folder of its own, for fingerprints are kept by folder."""
    ignored = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(PACKAGE, folder / "fedstage", ignore=ignored)


@pytest.fixture(scope="module")
def before():
    """The fingerprints of the package as it is."""
    return jobs(PACKAGE)


@pytest.fixture
def changed(tmp_path, before):
    """A function that edits a copy and returns the (stage, recipe) with a new fingerprint."""
    numbers = count()

    def edit(*edits):
        package = copied(tmp_path / str(next(numbers)))
        for file, old, new in edits:
            text = (package / file).read_text()
            assert old in text, (file, old)
            (package / file).write_text(text.replace(old, new))
        after = jobs(package)
        return {job for job in before if before[job] != after[job]}

    return edit


def stages_of(changes):
    return {stage for stage, _ in changes}


def recipes_of(changes):
    return {recipe for _, recipe in changes}


# --- what changes nothing -------------------------------------------------------------------------


def test_no_comment_docstring_or_formatting_of_any_module_counts(tmp_path, before):
    package = copied(tmp_path)
    for path in package.rglob("*.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if hasattr(node, "body") and isinstance(node.body, list) and node.body:
                first = node.body[0]
                if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                    first.value.value = "Other words."
        path.write_text("# A comment.\n" + ast.unparse(tree))
    assert jobs(package) == before


def test_what_declares_or_runs_is_no_part_of_results(changed):
    assert changed(
        ("settings/partitions.py", "mask: bool = True\n", "mask: bool = True\n    more: int = 0\n"),
        ("__init__.py", "0.1.0", "0.1.1"),
        ("plan/training.py", "Average the updates", "take the mean of the updates"),
        ("execution/cli.py", "return 0\n", "return 3\n"),
        ("execution/pool.py", "IDLE_SECONDS = 300.0", "IDLE_SECONDS = 30.0"),
        ("execution/timings.py", "1024", "1000"),
        ("settings/experiments.py", "like: str | None", "alike: str | None"),
        ("settings/validation.py", "unknown key", "no such key"),
    ) == set()  # fmt: skip


# --- what changes what ----------------------------------------------------------------------------


def each(stages, *recipes):
    return set(product(stages, recipes))


TRAINED = ("local_training", "aggregation", "segment")
TAUGHT = ("distillation", "segment")
GLOBAL, SHOT = "algorithm/global_trainers", "algorithm/one_shot"
OPTIMIZERS, DRAWING = (
    "algorithm/aggregation/server_optimizers",
    "algorithm/ensemble_trainers/sampling",
)
MLP = ("mlp", "mlp by yogi")
#: What is drawn; the logits of `bayesian` have the fingerprint of its segments, which draw.
OF_DRAWN = {("logits", f"{name} {kind}") for name in ("fedavg", "distilled") for kind in DRAWN}
OF_DRAWN |= each(("logits", "logits_segment", "segment"), "bayesian")
#: Edits of a file, and the stages of recipes whose fingerprints they change.
EDITS = [
    (f"{GLOBAL}/swa.py", "count += 1", "count += 2", each(TAUGHT, "averaged")),
    (f"{GLOBAL}/drop_worst.py", "MARGIN, DEVIATIONS = 1.2, 1.5", "MARGIN, DEVIATIONS = 1, 2",
     each(TAUGHT, "judged")),
    (f"{GLOBAL}/early_stopping.py", "right: int = -1", "right: int = -2", each(TAUGHT, "judged")),
    (f"{GLOBAL}/transfers/fedet.py", "members) * disagree", "members)",
     each(("distilled_model",), "fedet_os")),
    *((f"{DRAWING}/{name}.py", "from collections.abc import", "from typing import", OF_DRAWN)
      for name in ("draw", "gaussian", "dirichlet")),
    ("algorithm/local_trainers/fedprox.py", "def gradient_term(self,",
     "def gradient_term(self, more,",
     each(TRAINED, "fedprox")),
    ("algorithm/local_trainers/scaffold.py", "def gradient_term(self,",
     "def gradient_term(self, more,",
     each(TRAINED, "scaffold")),
    ("algorithm/local_trainers/fednova.py", "effective / mass", "effective * mass",
     each(TRAINED, "fednova")),
    ("algorithm/exchange/compression.py", "return above | (equal", "return (equal",
     each(TRAINED, "sparse")),
    ("training/losses/focal.py", "missed**gamma", "missed*gamma",
     each(("local_training", "segment", "local_model"), "focal")),
    (f"{OPTIMIZERS}/adam.py", "beta2 * v", "beta2 / v",
     each(TRAINED[1:], "adam") | each(("aggregator",), "mlp")),
    (f"{OPTIMIZERS}/yogi.py", "beta2: v -", "beta2: v +",
     each(TRAINED[1:], "yogi") | each(("aggregator",), "mlp by yogi")),
    (f"{OPTIMIZERS}/adaptive.py", "beta1 * first", "beta1 / first",
     each(TRAINED[1:], "adam", "yogi") | each(("aggregator",), *MLP)),
    (f"{SHOT}/aggregators/mlp.py", ".relu()", ".tanh()", each(OF_ONE_SHOT, *MLP)),
    (f"{SHOT}/fitting.py", "argmax(2)", "argmin(2)", each(("aggregator",), *ONE_SHOT)),
    (f"{SHOT}/aggregator_training/federated.py", "batches.pop(0)", "batches.pop()",
     each(("aggregator",), *MLP)),
    (f"{SHOT}/aggregator_training/proxy.py", "(own,) = ", "own, *_ = ",
     each(("aggregator",), "linear on a proxy")),
    (f"{SHOT}/generators/cvae.py", "BATCH = 1000", "BATCH = 1001",
     each(OF_GENERATORS["clients"], "cvae")),
    (f"{SHOT}/generators/coboosting.py", "SOFTENED = 4.0", "SOFTENED = 4.1",
     each(OF_GENERATORS["server"], "coboosting")),
    ("algorithm/discriminators/__init__.py", "def taken_for_real", "def taken",
     each(OF_ODDS[:2], "odds")),
    ("algorithm/ensemble_trainers/odds.py", "def shares", "def share", each(TAUGHT[:1], "odds")),
    ("models/discriminator.py", "class Discriminator", "HALF = 2\nclass Discriminator",
     each(OF_ODDS, "odds")),
    ("data/partitions/iid.py", "def assign", "SHARES = 1\ndef assign", each(("partition",), "iid")),
    ("data/datasets/torchvision_data.py", "import numpy as np\n", "import numpy\n",
     each(("dataset",), "cifar10")),
    # What is scored and asked of taught recipes was made from students in any case.
    ("algorithm/ensemble_trainers/clients.py", "def shares", "HALF = 2\ndef shares",
     each((*TAUGHT, "logits", "logits_segment", "evaluation"), "taught_by_clients", "judged")
     | {("evaluation", "clients")}),
]  # fmt: skip
#: Edits, and the stages that they change for all recipes that have these, or for those named.
EDITS_OF_STAGES = [
    ("settings/server.py", "round_ > server.buffer.after", "round_ > server.buffer.after + 1",
     {*TAUGHT}, None),
    (f"{GLOBAL}/distillation.py", "tau**2", "tau**3", {*TAUGHT, "synthesised"},
     {name for name, recipe in RECIPES.items() if recipe.global_trainer}
     | {"dense", "coboosting", "odds"}),
    # Clients of `features` hear a server that is trained as a student is.
    (f"{GLOBAL}/student.py", "outcome = train(", "outcome = 1 and train(",
     {*TAUGHT, "feature_training", "distilled_model", "local_training"}, None),
    # Generated images count what travels in tables of the same columns.
    (f"{SHOT}/aggregators/__init__.py", "Any, Protocol, cast", "Any, Protocol, TypeVar, cast",
     {*OF_ONE_SHOT, *OF_STUDENTS, "generated", "closed_form_model"}, None),
    # Aggregation imports the types of the loop with the local trainers.
    ("training/loop.py", "rate_sum += rates", "rate_sum += 2 * rates",
     {"local_model", *TAUGHT, "aggregation", "local_training", "distilled_model",
      "feature_training", "client_generator", "generated"}, None),
    ("models/architectures/resnet.py", "class Block", "LAYERS = 3\nclass Block",
     {*OF_STUDENTS, "initial_model", "local_training", "aggregation", "segment", "logits",
      "logits_segment", "evaluation", "retention", "client_accuracy", "local_model",
      "local_evaluation", "client_logits", "quantised_model", "feature_training", "synthesised",
      "feature_moments"}, {"resnet20", "features", "fedkd", "dense", "closed"}),
    ("results/tables/measured.py", "def read_metrics(", "RUNS = 1\ndef read_metrics(",
     RESULTS - {"retention_summary"}, None),
    ("results/tables/runs.py", "def read_runs(", "RUNS = 1\ndef read_runs(",
     RESULTS - {"retention_summary", "run_scores", "communication", "costs"}, None),
    ("results/scores.py", "def score(", "def scored(",
     {"evaluation", "client_accuracy", "local_evaluation", "one_shot_evaluation"}, None),
]  # fmt: skip


def test_an_edit_reaches_the_stages_and_recipes_that_can_run_it_only(changed):
    for file, old, new, expected in EDITS:
        assert changed((file, old, new)) == expected, file
    for file, old, new, stages, recipes in EDITS_OF_STAGES:
        changes = changed((file, old, new))
        assert stages_of(changes) == stages, file
        assert recipes is None or recipes_of(changes) == recipes, file
        if file.endswith("student.py"):
            assert ("local_training", "features") in changes
            assert ("local_training", "fedavg") not in changes


def test_edits_of_what_all_share_reach_all_of_it(changed, before):
    changes = changed(("models/layers.py", "def convolution", "GROUPS = 1\ndef convolution"))
    assert recipes_of(changes) >= RECIPES.keys()
    assert not stages_of(changes) & {"dataset", "partition", "participation", *RESULTS}
    assert changed(("storage/files.py", "import os\n", "import os\nTRIES = 3\n")) == before.keys()
    for edit in (
        ("plan/data_files.py", "clients.parquet", "who.parquet"),
        ("settings/exchange.py", "return (0,)\n", "return (1,)\n"),
    ):
        changes = stages_of(changed(edit))
        assert changes >= {
            "communication", "costs", "properties", "simulation", "round_times",
            "segment", "logits_segment", "report",
        }  # fmt: skip
        assert not changes & {"dataset", "partition", "tables", "figures"}


def test_what_a_trainers_settings_compute_reaches_its_own_recipes_only():
    member = "fedstage.settings.local_training:FedGkd.history"
    for local, expected in (("fedgkd", True), ("fedavg", False)):
        reached = reached_by(a_recipe(local=local), "segment")
        assert (member in reachable(*reached)[1]) == expected


def with_data(**keys):
    return DataOption.model_validate({"data": {"digits": keys}})


LOCAL = alone(RECIPES["fedavg"])
INT8 = LOCAL.model_copy(update={"quantisation": Int8(name="int8")})
KRUM = a_recipe(participants=3, aggregation={"rule": {"krum": {"faulty": 0}}})
HINGE = a_recipe(staleness="never", aggregation={"discount": "hinge"})
COMPILED = a_recipe(numerics={"compile": True})
EXCHANGING = {"ensemble": "clients", "server": {"steps": 2, "batch_size": 8, "learning_rate": 0.1}}
KEPT = a_recipe(local={"digest": {"cache": {}}}, **EXCHANGING)
ANEW = a_recipe(local="digest", **EXCHANGING)
VOTES = a_recipe(data={"digits": {"server_validation": 9}}, local={"fedgkd": {"teacher": "vote"}})
FREE, FREE_AS_RELEASED = (
    a_recipe(**DISTILLED | {"ensemble": "clients", "public": "generated", "generator": name})
    for name in ("fedftg", "fedftg_as_released")
)
FILE_OF_WEIGHTS = {"file": "a.pth", "sha256": "0" * 8}
UNTRAINED, PRETRAINED = (
    InitialModel(model=EfficientNet(name="efficientnet_b0", **more), seed=0)
    for more in ({}, {"weights": FILE_OF_WEIGHTS})
)
FLIPPED = {"held_out_augmentation": "flip"}
#: Modules, and stages of settings that reach them, and that do not.
MODULES = [
    ("models.int8", product(["quantised_model", "client_logits", "local_evaluation"], [INT8]),
     [*product(["quantised_model", "client_logits", "local_evaluation"], [LOCAL]),
      ("local_model", INT8)]),
    ("algorithm.aggregation.rules.krum", product(["aggregation", "segment"], [KRUM]),
     [("aggregation", RECIPES["fedavg"]), ("local_training", KRUM)]),
    ("algorithm.aggregation.rules", [("aggregation", KRUM)], [("segment", RECIPES["fedavg"])]),
    ("algorithm.aggregation.rules.median", [], [("aggregation", KRUM)]),
    ("algorithm.aggregation.discounts.hinge", [("aggregation", HINGE)], [("aggregation", KRUM)]),
    ("algorithm.aggregation.discounts.polynomial", [], [("aggregation", HINGE)]),
    ("algorithm.aggregation.asynchronous",
     [("aggregation", a_recipe(staleness={"cyclic": {"delays": [0, 1]}}))],
     [("aggregation", RECIPES["fedavg"])]),
    ("training.compiled", product(["local_training", "segment"], [COMPILED]),
     [*product(["local_training", "segment"], [RECIPES["fedavg"]]),
      *product(["dataset", "partition", "tables"], [COMPILED])]),
    ("training.public_images", [("dataset", with_data(held_out=9, **FLIPPED))],
     [("dataset", with_data(held_out=9)),
      *product(["local_training", "segment", "partition"], [a_recipe(data={"digits": FLIPPED})])]),
    ("algorithm.exchange.caching", [("aggregation", KEPT)], [("aggregation", ANEW)]),
    ("stages.cached_labels", [("segment", KEPT)], [("segment", ANEW)]),
    ("algorithm.local_trainers.votes", [("local_training", VOTES)],
     [("local_training", a_recipe(local="fedgkd")), ("local_training", KEPT)]),
    *((f"algorithm.global_trainers.{name}", product(["segment"], [FREE, FREE_AS_RELEASED]),
       [("segment", RECIPES["taught_by_clients"])])
      for name in ("data_free", "generators", "generators.fedftg")),
    ("algorithm.global_trainers.generators.fedftg_as_released", [("segment", FREE_AS_RELEASED)],
     [("segment", FREE)]),
    ("models.pretrained", [("initial_model", PRETRAINED)], [("initial_model", UNTRAINED)]),
    ("models.architectures.efficientnet", [("initial_model", UNTRAINED)], []),
]  # fmt: skip


def test_a_module_is_reached_by_the_stages_of_settings_that_need_it_only():
    for module, having, lacking in MODULES:
        for pairs, expected in ((having, True), (lacking, False)):
            for stage, settings in pairs:
                found, _ = reachable(stage, *reach(settings, stage))
                assert (f"fedstage.{module}" in found) == expected, (module, stage)


# --- reachable modules ----------------------------------------------------------------------------


def test_what_a_stage_imports_is_reachable_or_declares_or_is_chosen():
    code = """
import importlib, json, sys
loaded = {}
for stage in sys.argv[1:]:
    for name in [name for name in sys.modules if name.startswith("fedstage.")]:
        if not name.startswith("fedstage.settings"):  # which declares only, and takes long
            del sys.modules[name]
    importlib.import_module(f"fedstage.stages.{stage}")
    loaded[stage] = [name for name in sys.modules if name.partition(".")[0] == "fedstage"]
print(json.dumps(loaded))
"""
    command = [sys.executable, "-c", code, *STAGES]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    optional = behind_optional()
    for stage, loaded in json.loads(done.stdout).items():
        names, (reached, _) = set(loaded), reachable(stage)
        declaring = {name for name in names if name.startswith(DECLARING) or name == "fedstage"}
        assert names - reached - declaring <= optional, stage
        assert reached <= names, stage


def behind_optional():
    """What modules that nobody chose import."""
    waiting, found = set(optional_modules()), set()
    while waiting:
        module = waiting.pop()
        found.add(module)
        waiting |= imports(module) - found
    return found


def test_nothing_that_runs_stages_is_reachable():
    for (stage, about), (name, recipe) in product(STAGES.items(), RECIPES.items()):
        rooms = {one.split(".")[1] for one in reachable(stage, *reach(recipe, stage))[0]}
        assert not rooms & {"experiments", "execution", "errors", "settings"}, (stage, name)
        assert about.about_plan or "plan" not in rooms, (stage, name)


def test_stages_reach_no_other_stage_except_those_that_they_call():
    for stage in STAGES:
        others = {name for name in reachable(stage)[0] if name.startswith("fedstage.stages.")}
        # How stages read what they begin with stands in a module of its own.
        assert others - {"fedstage.stages.inputs"} == {f"fedstage.stages.{stage}"}


def test_segments_reach_the_stages_that_they_call_for_a_recipe():
    def stages(name, stage):
        reached, _ = reachable(stage, *reach(RECIPES[name], stage))
        found = {one.split(".")[2] for one in reached if one.startswith("fedstage.stages.")}
        return found - {"inputs"}

    assert stages("fedavg", "segment") == {"segment", "local_training", "aggregation"}
    taught = {"segment", "local_training", "aggregation", "logits", "logits_segment"}
    taught |= {"distillation"}
    assert stages("distilled", "segment") == taught
    assert stages("heads", "segment") == {*taught, "head_sharing"}
    assert stages("features", "segment") == {
        "segment", "local_training", "aggregation", "feature_training",
    }  # fmt: skip
    assert stages("fedavg", "logits_segment") == {"logits_segment", "logits"}


def test_modules_found_by_name_are_in_rooms_that_recipes_choose_from():
    rooms = {f"fedstage.{kind.room}" for kind in choices()}
    finders = {
        name
        for name in set().union(*(reachable(stage)[0] for stage in STAGES))
        if "implementation(" in modules()[name].read_text()
        and "settings.base" in str(imports(name))
    }
    assert finders <= rooms | {"fedstage.models.build"}


# --- choices --------------------------------------------------------------------------------------


def test_every_choice_of_the_settings_is_a_module():
    for name in (name for kind in choices() for name in kind.modules()):
        assert name in modules()
        assert name in optional_modules()


def test_every_kind_of_choice_has_several():
    rooms = [kind.room for kind in choices()]
    assert len(set(rooms)) == 16
    assert all(rooms.count(room) >= 2 for room in rooms)


def test_what_settings_use_is_a_field_and_a_module():
    using = [kind for kind in subclasses(Settings) if kind.uses]
    assert len(using) >= 7
    for kind in using:
        for field, name in kind.uses.items():
            assert field in kind.model_fields
            assert f"fedstage.{name}" in modules()


def names(*settings):
    found = {name.removeprefix("fedstage.") for one in settings for name in chosen_modules(one)}
    return {name for name in found if name != "data.datasets.digits"}


def test_a_recipe_chooses_what_its_settings_name():
    recipe = a_recipe(local="scaffold", model="resnet20", **DISTILLED)
    assert names(recipe) == {
        "data.partitions.dirichlet",
        "models.architectures.resnet",
        "algorithm.local_trainers.scaffold",
        "training.losses.cross_entropy",
        "algorithm.aggregation.server_optimizers.average",
        "algorithm.ensemble_trainers.aggregated",
        "algorithm.global_trainers.transfers.kl",
    }

    assert names(a_recipe(global_models=2, architectures=["cnn_small", "resnet20"])) >= {
        "models.architectures.cnn_small",
        "models.architectures.resnet",
    }
    # So do parts of recipes.
    divided = PartitionSettings(clients=2, partition=recipe.partition, validation=0.0, seed=0)
    assert names(divided) == {"data.partitions.dirichlet"}
    assert names(InitialModel(model=recipe.model, seed=0)) == {"models.architectures.resnet"}
    kl, rooms = "algorithm.global_trainers.transfers.kl", "algorithm.global_trainers"
    for name, expected in (
        ("distilled", {kl}),
        ("averaged", {kl, f"{rooms}.swa"}),
        ("judged", {kl, f"{rooms}.drop_worst", f"{rooms}.early_stopping"}),
    ):
        assert {found for found in names(RECIPES[name]) if f"{rooms}." in found} == expected


def test_a_stage_reaches_the_choices_that_its_code_depends_on():
    recipe = a_recipe(local="scaffold", model="resnet20", **DISTILLED)
    model, trainer = "models.architectures.resnet", "algorithm.local_trainers.scaffold"
    average = "algorithm.aggregation.server_optimizers.average"
    for stage, expected in {
        "recipe": set(),
        "participation": set(),
        "tables": set(),
        "dataset": {"data.datasets.digits"},
        "partition": {"data.partitions.dirichlet"},
        "initial_model": {model},
        "logits": {model, "algorithm.ensemble_trainers.aggregated"},
        "local_training": {model, trainer, "training.losses.cross_entropy"},
        "aggregation": {model, trainer, average},
    }.items():
        chosen, calls = reach(recipe, stage)
        found = chosen & reachable(stage, chosen, calls)[0]
        assert found == {f"fedstage.{name}" for name in expected}, stage


def test_a_drawn_kind_has_one_source_however_its_logits_are_made():
    for name in ("fedavg", "distilled", "bayesian"):
        sources = [
            source_of(RECIPES[name], stage, members="gaussian_10")
            for stage in ("logits", "logits_segment")
        ]
        assert len(set(sources)) == 1
    assert source_of(RECIPES["fedavg"], "logits", members="gaussian_10") != source_of(
        RECIPES["fedavg"], "logits", members="clients"
    )
    # The segment of this recipe draws them itself.
    recipe = RECIPES["bayesian"]
    assert source_of(recipe, "logits", members="gaussian_10") == source_of(recipe, "segment")


# --- what rules carry -----------------------------------------------------------------------------


def test_a_file_has_one_source_however_its_round_is_made():
    for name, recipe in RECIPES.items():
        segment = source_of(recipe, "segment")
        assert source_of(recipe, "local_training") == source_of(recipe, "aggregation") == segment, (
            name
        )
        if recipe.global_trainer:
            assert source_of(recipe, "distillation") == source_of(recipe, "logits") == segment, name
        else:
            assert source_of(recipe, "logits") == source_of(recipe, "logits_segment") != segment, (
                name
            )


def test_other_rules_carry_the_fingerprint_of_their_stage():
    recipe = RECIPES["fedavg"]
    of_segments = {name for stage in STAGES.values() for name in stage.calls}
    calls = {"local_training", "aggregation", "logits", *TEACHING}
    calls |= {"feature_training", "head_sharing", "cached_labels", "selected_labels"}
    calls |= {"advertise", "share", "masked_input", "unmask", "client_state"}
    assert of_segments == calls
    for stage in set(STAGES) - of_segments:
        assert source_of(recipe, stage) == fingerprint(recipe, stage, PACKAGE)
    expected = fingerprint(recipe, "evaluation", PACKAGE, parse_evaluated("clients"))
    assert source_of(recipe, "evaluation", "clients") == expected


def test_a_fingerprint_is_12_hexadecimal_digits_and_differs_between_stages():
    with pytest.raises(FedstageError, match=r"fedstage\.stages\.trian: no such module"):
        stage_fingerprint("trian")
    found = [stage_fingerprint(stage) for stage in STAGES]
    assert len(set(found)) == len(found)
    assert all(len(digits) == 12 and int(digits, 16) >= 0 for digits in found)


# --- a module -------------------------------------------------------------------------------------


def written(folder, files):
    """A package of the given files."""
    for name, text in {"__init__.py": "", **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def imported(folder, text, name="user"):
    """What a module of a small package imports, beside the package itself."""
    others = ("a.py", "b.py", "kind/__init__.py", "kind/one.py", "kind/two.py")
    files = {**dict.fromkeys(others, ""), f"{name.replace('.', '/')}.py": text}
    package = written(folder / "fedstage", files)
    return {found.removeprefix("fedstage.") for found in imports(f"fedstage.{name}", package)} - {
        "fedstage"
    }


def test_imports_of_a_module(tmp_path):
    for number, (text, expected) in enumerate([
        ("import json, torch, fedstages.a", set()),
        ("import fedstage.a", {"a"}),
        ("import fedstage.kind.one as x", {"kind", "kind.one"}),
        ("from fedstage import a, b", {"a", "b"}),
        ("from fedstage.a import f, g", {"a"}),
        ("from fedstage.kind import one, f", {"kind", "kind.one"}),
        ("from fedstage.kind.two import f", {"kind", "kind.two"}),
        ("def f():\n    from fedstage.a import g", {"a"}),
        ("class C:\n    async def f(self):\n        import fedstage.a", {"a"}),
        ("try:\n    import fedstage.a\nexcept ImportError:\n    import fedstage.b", {"a", "b"}),
        ("match 1:\n    case 1:\n        import fedstage.a", {"a"}),
        ("with f():\n    for x in y:\n        import fedstage.a", {"a"}),
        ("if x: pass\nelif y:\n    import fedstage.a\nelse: import fedstage.b", {"a", "b"}),
        ("if TYPE_CHECKING:\n    import fedstage.a", set()),
        ("if typing.TYPE_CHECKING:\n    from fedstage.a import f", set()),
        ("if TYPE_CHECKING:\n    import fedstage.a\nelse:\n    import fedstage.b", {"b"}),
        ("if TYPE_CHECKING:\n    import fedstage.a\nimport fedstage.a", {"a"}),
        ("if not TYPE_CHECKING:\n    import fedstage.a", {"a"}),
    ]):  # fmt: skip
        assert imported(tmp_path / str(number), text) == expected, text


def test_relative_imports(tmp_path):
    for number, (name, text, expected) in enumerate([
        ("kind.user", "from . import one", {"kind.one"}),
        ("kind.user", "from .one import f", {"kind.one"}),
        ("kind.user", "from ..a import f", {"a"}),
        ("kind.__init__", "from .one import f", {"kind.one"}),
    ]):  # fmt: skip
        module = name.removesuffix(".__init__")
        files = {"a.py": "", "kind/__init__.py": "", "kind/one.py": ""}
        files[f"{name.replace('.', '/')}.py"] = text
        package = written(tmp_path / str(number) / "fedstage", files)
        found = imports(f"fedstage.{module}", package) - {"fedstage", "fedstage.kind"}
        assert found == {f"fedstage.{other}" for other in expected}, text


PARTITIONS = "fedstage.data.partitions"
ROOM = {
    "data/__init__.py": "", "data/partitions/__init__.py": "",
    "data/partitions/iid.py": "import fedstage.a", "data/partitions/shards.py": "",
}  # fmt: skip
(PRETRAINED_MODULE,) = {f"fedstage.{name}" for name in EfficientNet.uses.values()}


def test_reachable_modules_of_small_packages(tmp_path):
    """In circles, beyond declarations, and in a room of choices those that are chosen."""
    for number, (text, files, chosen, expected) in enumerate([
        ("import fedstage.a", {"a.py": "import fedstage.b", "b.py": "import fedstage.a"}, (),
         {"fedstage.a", "fedstage.b"}),
        ("import fedstage.settings", {"settings.py": "import fedstage.b", "b.py": ""}, (), set()),
        (f"import {PARTITIONS}", ROOM | {"a.py": ""}, (), {"fedstage.data", PARTITIONS}),
        (f"import {PARTITIONS}", ROOM | {"a.py": ""}, (f"{PARTITIONS}.iid",),
         {"fedstage.data", PARTITIONS, f"{PARTITIONS}.iid", "fedstage.a"}),
        (f"import {PRETRAINED_MODULE}", {"models/__init__.py": "", "models/pretrained.py": ""}, (),
         {"fedstage.models"}),
        (f"import {PRETRAINED_MODULE}", {"models/__init__.py": "", "models/pretrained.py": ""},
         (PRETRAINED_MODULE,), {"fedstage.models", PRETRAINED_MODULE}),
    ]):  # fmt: skip
        stages = {"stages/__init__.py": "import fedstage.c", "stages/x.py": text, "c.py": ""}
        package = written(tmp_path / str(number) / "fedstage", stages | files)
        found, _ = reachable("x", frozenset(chosen), package=package)
        assert found == {"fedstage.stages.x", *expected}, number


def test_code_has_one_digest_however_it_is_written(tmp_path):
    for number, (first, other, same) in enumerate([
        ("x = 1", "x = 2", False),
        ("x = 1", "x = 1.0", False),
        ("x = 1", "x = True", False),
        ("x = None", "x = ()", False),
        ("return_ = f()", "return_ = f(None)", False),
        ("def f():\n    return", "def f():\n    return None", False),
        ("'a docstring'\nx = 'b'", "'a docstring'\nx = 'c'", False),
        ("def f(a, b=1): ...", "def f(a, *, b=1): ...", False),
        ("x = a if b else c", "x = c if b else a", False),
        ("x = f'{a}'", "x = f'{a!r}'", False),
        ("x = -1", "x = 1", False),
        ("x = {**a}", "x = {None: a}", False),
        ("for x in y:\n    'not a docstring'", "for x in y:\n    'nor this one'", False),
        ("x = 1", "# A comment\nx  =  1  # and another", True),
        ("x = 'a' 'b'", 'x = ("ab")', True),
        ("'doc'\nx = 1", "x = 1", True),
        ("class C:\n    'doc'\n    x = 1", "class C:\n    'other'\n    x = 1", True),
        ("async def f():\n    'doc'\n    return 1", "async def f():\n    return 1", True),
        ("def f(a, b): return a", "def f(\n    a,\n    b,\n):\n    return a", True),
        ("x = 1_000", "x = 1000", True),
    ]):  # fmt: skip
        files = {"one.py": first, "other.py": other}
        package = written(tmp_path / str(number) / "fedstage", files)
        digests = [module_digest(f"fedstage.{name}", package) for name in ("one", "other")]
        assert (digests[0] == digests[1]) == same, first


CODE = '''
"""A module."""
import json
class C(list):
    """A class."""
    async def f(self, a, /, b: int = 0, *args, c=None, **kwargs) -> f"{1!r:>3}":
        """A method."""
        match a:
            case {"x": [1, *_], **rest} if b: return -1.5e3 + 2j
        with open(a) as file: x: int = file if not b else lambda: {**a, "y": b"z"}
        try: del x
        except* OSError: pass
        return (yield)
'''


def test_the_digest_does_not_depend_on_the_version_of_python(tmp_path):
    # Were it another, all results of earlier versions would be made anew.
    package = written(tmp_path / "fedstage", {"one.py": CODE})
    assert module_digest("fedstage.one", package).startswith("d8ca77fd49196626")


def test_fingerprints_need_no_torch_and_know_all_choices_whatever_else_is_imported():
    code = """
import sys
from fedstage.plan.source import optional_modules
print(*sorted(optional_modules()), *{"torch", "pyarrow", "numpy"} & {*sys.modules})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == optional_modules()
