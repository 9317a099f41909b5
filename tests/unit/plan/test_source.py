import ast
import json
import shutil
import subprocess
import sys
from itertools import product

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
    definitions,
    optional_modules,
    reachable,
    reached_by,
    source_of,
    stage_fingerprint,
)
from fedstage.plan.stages import STAGES
from fedstage.plan.syntax import PACKAGE, imports, module_digest, modules
from fedstage.plan.training import DISTILLATIONS
from fedstage.settings.base import Choice, Settings, subclasses
from fedstage.settings.data import DataOption
from fedstage.settings.models import EfficientNet, InitialModel
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.partitions import PartitionSettings
from fedstage.settings.quantisation import Int8
from fedstage.settings.recipes import LocalRecipe, Recipe

SERVER = {"steps": 5, "batch_size": 32, "learning_rate": 0.05}
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
#: The stages that generate images, by who trains what generates them.
CLOSED = {"closed": one_shot(distillation="closed_form", model="resnet8")}
#: The stages of heads in closed form.
OF_MOMENTS = ("feature_moments", "closed_form_model")
OF_GENERATORS = {"clients": ("client_generator", "generated"), "server": ("synthesised",)}
#: The stages of one-shot recipes.
OF_ONE_SHOT = ("aggregator", "one_shot_evaluation")
#: The stages of one-shot recipes with a student.
OF_STUDENTS = ("distilled_model", "one_shot_evaluation")
#: The stages that make of metrics what people read.
RESULTS = {
    "tables",
    "figures",
    "comparison",
    "sweep",
    "claims",
    "communication",
    "costs",
    "retention_summary",
    "report",
}


def reach(settings, stage, *more):
    """The modules and stages that a stage has of settings."""
    chosen = frozenset().union(*map(chosen_modules, (settings, *more)))
    return chosen, called(stage, settings)


def fingerprint(settings, stage, package, *more):
    classes = frozenset().union(*map(classes_of, (settings, *more)))
    return stage_fingerprint(stage, *reach(settings, stage, *more), package, classes)


def recipes_with(stage):
    """The recipes whose fingerprints of a stage are asked for: one where no recipe has its own."""
    alike = STAGES[stage].presents or stage in ("recipe", "dataset", "participation", "choice")
    return {"fedavg": RECIPES["fedavg"]} if alike else RECIPES


def jobs(package):
    """Fingerprints of all stages of recipes that differ in them, and of evaluated ensembles."""
    found = {}
    others = {*OF_ONE_SHOT, *OF_STUDENTS, *OF_ODDS, *OF_MOMENTS}.union(*OF_GENERATORS.values())
    of_rounds = {stage.name: stage for stage in OF_ROUNDS}
    for stage in STAGES.keys() - others:
        for name, recipe in recipes_with(stage).items():
            if stage not in of_rounds or of_rounds[stage].used(recipe):
                distils = stage in DISTILLATIONS
                found["distillation" if distils else stage, name] = fingerprint(
                    recipe, stage, package
                )
    for name, recipe in ONE_SHOT.items():
        for stage in OF_ONE_SHOT:
            found[stage, name] = fingerprint(recipe, stage, package)
    for name, recipe in STUDENTS.items():
        for stage in OF_STUDENTS:
            found[stage, name] = fingerprint(recipe, stage, package)
    for name, recipe in GENERATING.items():
        for stage in OF_GENERATORS[recipe.generator.trained_by]:
            found[stage, name] = fingerprint(generated_images(recipe).job.config, stage, package)
    for name, recipe in CLOSED.items():
        found[OF_MOMENTS[0], name] = fingerprint(
            shot.FEATURE_MOMENTS(recipe, 0).job.config, OF_MOMENTS[0], package
        )
        found[OF_MOMENTS[1], name] = fingerprint(recipe, OF_MOMENTS[1], package)
    for name, recipe in ODDS.items():
        for stage in OF_ODDS:
            found[stage, name] = fingerprint(
                discriminators.CLIENT_ODDS(recipe).job.config, stage, package
            )
        found["distillation", name] = fingerprint(recipe, "distillation", package)
    for evaluated in ("clients", "aggregated_2"):
        more = parse_evaluated(evaluated)
        found["evaluation", evaluated] = fingerprint(RECIPES["fedavg"], "evaluation", package, more)
    for members in ("clients", "aggregated", "gaussian_3", "dirichlet_3"):
        more = [drawn] if (drawn := parse_sampled(members)) else []
        for name in ("fedavg", "distilled"):
            found["logits", f"{name} {members}"] = fingerprint(
                RECIPES[name], "logits", package, *more
            )
    for name in ("cifar10", {"parquet": {"folder": "x"}}):
        option = DataOption.model_validate({"data": name})
        found["dataset", option.data.name] = fingerprint(option, "dataset", package)
    return found


@pytest.fixture
def package(tmp_path):
    """A copy of the package in a folder of its own, for fingerprints are kept by folder."""
    copy = tmp_path / "fedstage"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.fixture(scope="module")
def before():
    """The fingerprints of the package as it is."""
    return jobs(PACKAGE)


@pytest.fixture
def changed(package, before):
    """A function that edits the copy and returns the (stage, recipe) with a new fingerprint."""

    def edit(*edits):
        for file, old, new in edits if isinstance(edits[0], tuple) else [edits]:
            path = package / file
            text = path.read_text()
            assert old in text
            path.write_text(text.replace(old, new))
        after = jobs(package)
        return {job for job in before if before[job] != after[job]}

    return edit


DRAWN = ("gaussian_3", "dirichlet_3")


def stages_of(changes):
    return {stage for stage, _ in changes}


def recipes_of(changes):
    return {recipe for _, recipe in changes}


# --- what changes nothing -------------------------------------------------------------------------


def test_a_copy_has_the_fingerprints_of_the_package(package, before):
    assert jobs(package) == before


def test_comments_docstrings_and_formatting_change_nothing(changed):
    trains = "    model.train()\n"
    entropy = "return float(nn.functional.cross_entropy(logits, labels))"
    formatted = "return (float(\n        nn.functional.cross_entropy( logits,labels, )))"
    gone = '    """Return the mean cross entropy of logits [n, classes] against labels [n]."""\n'
    assert changed(
        ("training/loop.py", trains, f"    # Batch norms average.\n{trains}"),
        ("training/loop.py", "one step a batch.", "a step for each batch."),
        ("training/inference.py", gone, ""),
        ("training/inference.py", entropy, formatted),
    ) == set()  # fmt: skip


def test_no_comment_docstring_or_formatting_of_any_module_counts(package, before):
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
        ("plan/training.py", "average the updates", "take the mean of the updates"),
        ("execution/cli.py", "return 0\n", "return 3\n"),
        ("execution/pool.py", "IDLE_SECONDS = 300.0", "IDLE_SECONDS = 30.0"),
        ("execution/timings.py", "1024", "1000"),
        ("settings/experiments.py", "like: str | None", "alike: str | None"),
        ("settings/validation.py", "unknown key", "no such key"),
    ) == set()  # fmt: skip


# --- what changes what ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("plan/data_files.py", "clients.parquet", "who.parquet"),
        ("settings/exchange.py", "return (0,)\n", "return (1,)\n"),
    ],
)
def test_the_edges_reach_what_is_computed_from_them_only(changed, file, old, new):
    changes = stages_of(changed(file, old, new))
    assert changes >= {
        "communication", "costs", "properties", "simulation", "round_times",
        "segment", "logits_segment", "report",
    }  # fmt: skip
    assert not changes & {"dataset", "partition", "tables", "figures"}


def test_what_settings_compute_reaches_the_jobs_that_run_it_only(changed):
    buffer = (
        "settings/server.py",
        "round_ > server.buffer.after",
        "round_ > server.buffer.after + 1",
    )
    assert stages_of(changed(*buffer)) == {"distillation", "segment"}


def test_what_a_trainers_settings_compute_reaches_its_own_recipes_only():
    member = "fedstage.settings.local_training:FedGkd.history"
    for local, expected in (("fedgkd", True), ("fedavg", False)):
        reached = reached_by(a_recipe(local=local), "segment")
        assert (member in definitions(*reached[:3], classes=reached[3])) == expected


def test_distillation_reaches_distilled_recipes_only(changed):
    changes = changed("algorithm/global_trainers/distillation.py", "tau**2", "tau**3")
    assert stages_of(changes) == {"distillation", "segment", "synthesised"}
    beside_generators = {"dense", "coboosting"}
    distilled = {name for name, recipe in RECIPES.items() if recipe.global_trainer}
    assert recipes_of(changes) == distilled | beside_generators | {"odds"}


@pytest.mark.parametrize(
    ("file", "old", "recipe"),
    [
        ("swa.py", "count += 1", "averaged"),
        ("drop_worst.py", "MARGIN, DEVIATIONS = 1.2, 1.5", "judged"),
        ("early_stopping.py", "right: int = -1", "judged"),
    ],
)
def test_what_only_some_students_do_reaches_their_recipes_only(changed, file, old, recipe):
    changes = changed(f"algorithm/global_trainers/{file}", old, old.replace("1", "2"))
    assert changes == {("distillation", recipe), ("segment", recipe)}


@pytest.mark.parametrize("file", ["draw.py", "gaussian.py", "dirichlet.py"])
def test_how_models_are_drawn_reaches_what_is_drawn_only(changed, file):
    changes = changed(
        f"algorithm/ensemble_trainers/sampling/{file}",
        "from collections.abc import",
        "from typing import",
    )
    drawn = {("logits", f"{name} {kind}") for name in ("fedavg", "distilled") for kind in DRAWN}
    # The logits of this recipe are made with the fingerprint of its segments, which draw.
    stages = ("logits", "logits_segment", "segment")
    assert changes == drawn | {(stage, "bayesian") for stage in stages}


@pytest.mark.parametrize("name", ["fedprox", "scaffold"])
def test_a_local_trainer_reaches_its_own_recipes_only(changed, name):
    new = "def gradient_term(\n    settings: object,"
    old = {"fedprox": "FedProx", "scaffold": "Scaffold"}[name]
    changes = changed(
        f"algorithm/local_trainers/{name}.py", f"def gradient_term(\n    settings: {old},", new
    )
    stages = ("local_training", "aggregation", "segment")
    assert changes == {(stage, name) for stage in stages}


def test_a_loss_reaches_its_own_recipes_only(changed):
    changes = changed("training/losses/focal.py", "missed**gamma", "missed*gamma")
    stages = ("local_training", "segment", "local_model")
    assert changes == {(stage, "focal") for stage in stages}


def test_normalised_averaging_reaches_its_own_recipes_only(changed):
    changes = changed("algorithm/local_trainers/fednova.py", "effective / mass", "effective * mass")
    stages = ("local_training", "aggregation", "segment")
    assert changes == {(stage, "fednova") for stage in stages}


@pytest.mark.parametrize(
    ("file", "old", "new", "recipes"),
    [
        ("adam.py", "beta2 * v", "beta2 / v", {"adam"}),
        ("yogi.py", "beta2: v -", "beta2: v +", {"yogi"}),
        ("adaptive.py", "beta1 * first", "beta1 / first", {"adam", "yogi"}),
    ],
)
def test_a_server_optimizer_reaches_its_own_recipes_only(changed, file, old, new, recipes):
    changes = changed(f"algorithm/aggregation/server_optimizers/{file}", old, new)
    trained = {"adam": "mlp", "yogi": "mlp by yogi"}
    assert changes == {
        *((stage, recipe) for stage in ("aggregation", "segment") for recipe in recipes),
        *(("aggregator", trained[recipe]) for recipe in recipes),
    }


def test_an_aggregation_rule_reaches_its_own_aggregators_only(changed):
    changes = changed("algorithm/one_shot/aggregators/mlp.py", ".relu()", ".tanh()")
    recipes = ("mlp", "mlp by yogi")
    assert changes == {(stage, recipe) for stage in OF_ONE_SHOT for recipe in recipes}


def test_votes_are_counted_in_the_stage_of_all_aggregators(changed):
    changes = changed("algorithm/one_shot/fitting.py", "argmax(2)", "argmin(2)")
    assert changes == {("aggregator", recipe) for recipe in ONE_SHOT}


@pytest.mark.parametrize(
    ("file", "old", "new", "recipes"),
    [
        ("federated.py", "batches.pop(0)", "batches.pop()", ("mlp", "mlp by yogi")),
        ("proxy.py", "(own,) = ", "own, *_ = ", ("linear on a proxy",)),
    ],
)
def test_a_way_to_train_an_aggregator_reaches_its_own(changed, file, old, new, recipes):
    changes = changed(f"algorithm/one_shot/aggregator_training/{file}", old, new)
    assert changes == {("aggregator", recipe) for recipe in recipes}


def test_a_transfer_reaches_its_own_students_only(changed):
    changes = changed(
        "algorithm/global_trainers/transfers/fedet.py",
        "members) * disagree",
        "members)",
    )
    assert changes == {("distilled_model", "fedet_os")}


def test_how_students_are_taught_reaches_students_of_rounds_and_of_one_shot(changed):
    changes = changed(
        "algorithm/global_trainers/student.py", "outcome = train(", "outcome = 1 and train("
    )
    of_rounds = {"distillation", "feature_training", "segment", "distilled_model"}
    assert stages_of(changes) == of_rounds | {"local_training"}
    # Where clients hear a server that is trained as a student is.
    assert {recipe for stage, recipe in changes if stage == "local_training"} == {"features"}


def test_what_an_aggregator_needs_reaches_no_training_of_models(changed):
    changes = changed(
        "algorithm/one_shot/aggregators/__init__.py",
        "import Any, Protocol, cast",
        "import Any, Protocol, TypeVar, cast",
    )
    # Generated images count what travels in tables of the same columns.
    assert stages_of(changes) == {*OF_ONE_SHOT, *OF_STUDENTS, "generated", "closed_form_model"}


def test_compression_reaches_what_is_compressed_only(changed):
    changes = changed("algorithm/exchange/compression.py", "return above | (equal", "return (equal")
    stages = ("local_training", "aggregation", "segment")
    assert changes == {(stage, "sparse") for stage in stages}


def test_the_training_loop_reaches_what_trains(changed):
    changes = changed("training/loop.py", "rate_sum += rates", "rate_sum += 2 * rates")
    # Aggregation imports the types of the loop with the local trainers.
    trains = {"local_model", "distillation", "segment", "aggregation", "local_training"}
    assert stages_of(changes) == trains | {
        "distilled_model", "feature_training", "client_generator", "generated",
    }  # fmt: skip
    assert {("local_training", name) for name in RECIPES} <= changes


def test_a_model_reaches_its_own_recipes_only(changed):
    changes = changed(
        "models/architectures/resnet.py", "class Block", "LAYERS = 3\n\n\nclass Block"
    )
    assert recipes_of(changes) == {"resnet20", "features", "fedkd", "dense", "closed"}
    assert stages_of(changes) == {
        *OF_STUDENTS,
        "initial_model", "local_training", "aggregation", "segment", "logits",
        "logits_segment", "evaluation", "retention", "client_accuracy", "local_model",
        "local_evaluation", "client_logits", "quantised_model", "feature_training", "synthesised",
        "feature_moments",
    }  # fmt: skip


def test_what_all_models_share_reaches_all_that_use_it(changed):
    changes = changed("models/layers.py", "def convolution", "GROUPS = 1\n\n\ndef convolution")
    assert recipes_of(changes) >= RECIPES.keys()
    assert not stages_of(changes) & {"dataset", "partition", "participation", *RESULTS}


@pytest.mark.parametrize(
    ("file", "old", "expected"),
    [
        ("cvae", "BATCH = 1000", {("client_generator", "cvae"), ("generated", "cvae")}),
        ("coboosting", "SOFTENED = 4.0", {("synthesised", "coboosting")}),
    ],
)
def test_a_generator_reaches_its_own_images_only(changed, file, old, expected):
    assert changed(f"algorithm/one_shot/generators/{file}.py", old, f"{old}1") == expected


def test_a_generator_of_rounds_reaches_the_recipes_that_have_it_only():
    settings = DISTILLED | {"ensemble": "clients", "public": "generated"}
    own = {"data_free", "generators.fedftg", "generators"}
    for name in ("fedftg", "fedftg_as_released"):
        recipe = a_recipe(**settings | {"generator": name})
        below = [one.partition("global_trainers.")[2] for one in
                 reachable("segment", *reach(recipe, "segment"))]  # fmt: skip
        assert own <= set(below)
        assert ("generators.fedftg_as_released" in below) == (name == "fedftg_as_released")
    taught = reachable("segment", *reach(RECIPES["taught_by_clients"], "segment"))
    assert not [one for one in taught if "global_trainers.generators" in one or "data_free" in one]


@pytest.mark.parametrize(
    ("file", "old", "reached"),
    [
        ("algorithm/discriminators/__init__.py", "def taken_for_real", OF_ODDS[:2]),
        ("algorithm/ensemble_trainers/odds.py", "def shares", ("distillation",)),
        ("models/discriminator.py", "class Discriminator", OF_ODDS),
    ],
)
def test_discriminators_reach_the_recipes_whose_votes_they_weigh(changed, file, old, reached):
    changes = changed(file, old, f"HALF = 2\n\n\n{old}")
    assert changes == {(stage, "odds") for stage in reached}


def test_quantisation_reaches_what_is_quantised_only():
    recipe = alone(RECIPES["fedavg"])
    quantised = recipe.model_copy(update={"quantisation": Int8(name="int8")})
    for stage in ("quantised_model", "client_logits", "local_evaluation"):
        assert "fedstage.models.int8" in reachable(stage, *reach(quantised, stage))
        assert "fedstage.models.int8" not in reachable(stage, *reach(recipe, stage))
    assert "fedstage.models.int8" not in reachable("local_model", *reach(quantised, "local_model"))


def test_a_rule_for_models_reaches_what_it_aggregates_only():
    room = "fedstage.algorithm.aggregation.rules"
    krum = a_recipe(participants=3, aggregation={"rule": {"krum": {"faulty": 0}}})
    for stage in ("aggregation", "segment"):
        found = reachable(stage, *reach(krum, stage))
        assert {room, f"{room}.krum"} <= found
        assert f"{room}.median" not in found
        plain = reachable(stage, *reach(RECIPES["fedavg"], stage))
        assert not any(module.startswith(room) for module in plain)
    training = reachable("local_training", *reach(krum, "local_training"))
    assert not any(module.startswith(room) for module in training)


def test_a_discount_reaches_what_it_discounts_only():
    room = "fedstage.algorithm.aggregation.discounts"
    late = a_recipe(staleness="never", aggregation={"discount": "hinge"})
    found = reachable("aggregation", *reach(late, "aggregation"))
    assert f"{room}.hinge" in found
    assert f"{room}.polynomial" not in found
    plain = reachable("aggregation", *reach(RECIPES["fedavg"], "aggregation"))
    assert not any(module.startswith(room) for module in plain)


def test_stale_updates_reach_what_asks_for_their_discounts():
    module = "fedstage.algorithm.aggregation.asynchronous"
    late = a_recipe(staleness={"cyclic": {"delays": [0, 1]}})
    assert module in reachable("aggregation", *reach(late, "aggregation"))
    in_time = reach(RECIPES["fedavg"], "aggregation")
    assert module not in reachable("aggregation", *in_time)


def test_a_scheme_reaches_its_own_partitions_only(changed):
    changes = changed("data/partitions/iid.py", "def assign", "SHARES = 1\n\n\ndef assign")
    assert changes == {("partition", "iid")}


def test_an_ensemble_reaches_those_that_it_teaches_and_its_evaluations(changed):
    file = "algorithm/ensemble_trainers/clients.py"
    changes = changed(file, "def shares", "HALF = 2\n\n\ndef shares")
    # What is scored and asked of taught recipes was made from students in any case.
    stages = ("distillation", "segment", "logits", "logits_segment", "evaluation")
    recipes = ("taught_by_clients", "judged")
    taught = {(stage, recipe) for stage in stages for recipe in recipes}
    assert changes == taught | {("evaluation", "clients")}


def test_kept_labels_and_votes_reach_the_recipes_that_have_them_only():
    servers = {"steps": 2, "batch_size": 8, "learning_rate": 0.1}
    exchanging = {"ensemble": "clients", "server": servers}
    recipes = {
        "kept": a_recipe(local={"digest": {"cache": {}}}, **exchanging),
        "anew": a_recipe(local="digest", **exchanging),
        "mean": a_recipe(local="fedgkd"),
        "votes": a_recipe(
            data={"digits": {"server_validation": 9}}, local={"fedgkd": {"teacher": "vote"}}
        ),
    }
    for stage, module, name in (
        ("aggregation", "algorithm.exchange.caching", "kept"),
        ("segment", "stages.cached_labels", "kept"),
        ("local_training", "algorithm.local_trainers.votes", "votes"),
    ):
        reached = {
            one for one, recipe in recipes.items()
            if f"fedstage.{module}" in reachable(stage, *reach(recipe, stage))
        }  # fmt: skip
        assert reached == {name}


def test_a_data_module_reaches_its_own_data_sets_only(changed):
    changes = changed("data/datasets/torchvision_data.py", "import numpy as np\n", "import numpy\n")
    assert changes == {("dataset", "cifar10")}


def test_tables_and_figures_reach_no_training(changed):
    changes = changed("results/tables/runs.py", "def read_runs(", "RUNS = 1\n\n\ndef read_runs(")
    assert stages_of(changes) == RESULTS - {"retention_summary"}  # which reads no metrics


def test_how_metrics_are_scored_reaches_evaluations_only(changed):
    changes = changed("results/scores.py", "def score(", "def scored(")
    assert stages_of(changes) == {
        "evaluation", "client_accuracy", "local_evaluation", "one_shot_evaluation",
    }  # fmt: skip


def test_files_reach_everything(changed, before):
    changes = changed("storage/files.py", "import os\n", "import os\n\nTRIES = 3\n")
    assert changes == before.keys()


# --- reachable modules ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def loaded():
    """The fedstage modules that a process has after importing each stage."""
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
    return {stage: set(names) for stage, names in json.loads(done.stdout).items()}


def test_what_a_stage_imports_is_reachable_or_declares_or_is_chosen(loaded):
    optional = behind_optional()
    for stage, names in loaded.items():
        reached = reachable(stage)
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
        rooms = {one.split(".")[1] for one in reachable(stage, *reach(recipe, stage))}
        assert not rooms & {"experiments", "execution", "errors", "settings"}, (stage, name)
        assert about.about_plan or "plan" not in rooms, (stage, name)


def test_stages_reach_no_other_stage_except_those_that_they_call():
    for stage in STAGES:
        others = {name for name in reachable(stage) if name.startswith("fedstage.stages.")}
        # How stages read what they begin with stands in a module of its own.
        assert others - {"fedstage.stages.inputs"} == {f"fedstage.stages.{stage}"}


def test_segments_reach_the_stages_that_they_call_for_a_recipe():
    def stages(name, stage):
        reached = reachable(stage, *reach(RECIPES[name], stage))
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
        for name in set().union(*map(reachable, STAGES))
        if "implementation(" in modules()[name].read_text()
        and "settings.base" in str(imports(name))
    }
    assert finders <= rooms | {"fedstage.models.build"}


# --- choices --------------------------------------------------------------------------------------


def choices():
    return [kind for kind in subclasses(Choice) if kind.names()]


def test_every_choice_of_the_settings_is_a_module():
    for name in (name for kind in choices() for name in kind.modules()):
        assert f"fedstage.{name}" in modules()
        assert f"fedstage.{name}" in optional_modules()


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


def test_weights_of_a_file_are_read_for_models_that_have_them_only():
    weights = {"file": "a.pth", "sha256": "0" * 8}
    with_file = EfficientNet.model_validate({"name": "efficientnet_b0", "weights": weights})
    without = EfficientNet(name="efficientnet_b0")
    reached = [
        reachable("initial_model", chosen_modules(InitialModel(model=model, seed=0)))
        for model in (without, with_file)
    ]
    assert "fedstage.models.architectures.efficientnet" in reached[0]
    assert reached[1] - reached[0] == {"fedstage.models.pretrained"}


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


def test_a_recipe_chooses_the_models_of_all_its_groups():
    mixed = a_recipe(global_models=2, architectures=["cnn_small", "resnet20"])
    models = {name for name in names(mixed) if name.startswith("models.")}
    assert models == {"models.architectures.cnn_small", "models.architectures.resnet"}


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
        found = chosen & reachable(stage, chosen, calls)
        assert found == {f"fedstage.{name}" for name in expected}, stage


def test_changes_of_public_images_reach_data_sets_that_have_them_only():
    def of_dataset(**keys):
        data = DataOption.model_validate({"data": {"digits": keys}})
        return reachable("dataset", *reach(data, "dataset"))

    plain = of_dataset(held_out=9)
    assert of_dataset(held_out_augmentation="flip") - plain == {
        "fedstage.training.public_images", "fedstage.training.images", "fedstage.data.bags",
    }  # fmt: skip
    recipe = a_recipe(data={"digits": {"held_out_augmentation": "flip"}})
    for stage in ("local_training", "segment", "partition"):
        assert "fedstage.training.public_images" not in reachable(stage, *reach(recipe, stage))


def test_the_compiler_is_part_of_what_is_trained_by_compiled_code():
    compiled, plain = a_recipe(numerics={"compile": True}), a_recipe()
    for stage in ("local_training", "segment"):
        assert "fedstage.training.compiled" in reachable(stage, *reach(compiled, stage))
        assert "fedstage.training.compiled" not in reachable(stage, *reach(plain, stage))
    for stage in ("dataset", "partition", "tables"):
        assert "fedstage.training.compiled" not in reachable(stage, *reach(compiled, stage))


def test_what_a_server_may_do_is_chosen_by_its_settings():
    def of_server(name):
        return {name for name in names(RECIPES[name]) if ".global_trainers." in name}

    rooms = "algorithm.global_trainers"
    kl = f"{rooms}.transfers.kl"
    assert of_server("distilled") == {kl}
    assert of_server("averaged") == {kl, f"{rooms}.swa"}
    assert of_server("judged") == {kl, f"{rooms}.drop_worst", f"{rooms}.early_stopping"}


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


def test_other_settings_than_recipes_choose():
    recipe = RECIPES["resnet20"]
    divided = PartitionSettings(clients=2, partition=recipe.partition, validation=0.0, seed=0)
    assert names(divided) == {"data.partitions.dirichlet"}
    weights = InitialModel(model=recipe.model, seed=recipe.seed)
    assert names(weights) == {"models.architectures.resnet"}


def test_a_stage_that_does_not_exist_is_named():
    with pytest.raises(FedstageError, match=r"fedstage\.stages\.trian: no such module"):
        stage_fingerprint("trian")


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
    calls = {"local_training", "aggregation", "logits", *DISTILLATIONS}
    calls |= {"feature_training", "head_sharing", "cached_labels", "selected_labels"}
    assert of_segments == calls
    for stage in set(STAGES) - of_segments:
        assert source_of(recipe, stage) == fingerprint(recipe, stage, PACKAGE)
    expected = fingerprint(recipe, "evaluation", PACKAGE, parse_evaluated("clients"))
    assert source_of(recipe, "evaluation", "clients") == expected


def test_a_fingerprint_is_12_hexadecimal_digits_and_differs_between_stages():
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


def test_relative_imports_of_a_module(tmp_path):
    for number, (name, text, expected) in enumerate(
        [
            ("kind.user", "from . import one", {"kind", "kind.one"}),
            ("kind.user", "from .one import f", {"kind", "kind.one"}),
            ("kind.user", "from ..a import f", {"a"}),
        ]
    ):
        found = imported(tmp_path / str(number), text, name)
        assert found - {"kind"} == expected - {"kind"}, text


def test_relative_imports_of_a_package(tmp_path):
    files = {"kind/__init__.py": "from .one import f", "kind/one.py": ""}
    package = written(tmp_path / "fedstage", files)
    assert imports("fedstage.kind", package) >= {"fedstage.kind.one"}


def test_a_module_may_import_in_circles(tmp_path):
    files = {"stages/__init__.py": "", "stages/x.py": "import fedstage.a"}
    files |= {"a.py": "import fedstage.b", "b.py": "import fedstage.a"}
    package = written(tmp_path / "fedstage", files)
    assert reachable("x", package=package) == {"fedstage.stages.x", "fedstage.a", "fedstage.b"}


def test_what_only_declarations_import_is_not_reachable(tmp_path):
    files = {"stages/__init__.py": "import fedstage.a", "stages/x.py": "import fedstage.settings"}
    files |= {"a.py": "", "b.py": "", "settings.py": "import fedstage.b"}
    package = written(tmp_path / "fedstage", files)
    assert reachable("x", package=package) == {"fedstage.stages.x"}


def test_a_room_of_choices_is_reached_with_the_modules_that_are_chosen_there(tmp_path):
    room = "fedstage.data.partitions"
    files = {"stages/__init__.py": "", "stages/x.py": f"import {room}", "a.py": ""}
    files |= {f"data/{name}": "" for name in ("__init__.py", "partitions/__init__.py")}
    files |= {"data/partitions/iid.py": "import fedstage.a", "data/partitions/shards.py": ""}
    package = written(tmp_path / "fedstage", files)
    found = {"fedstage.stages.x", "fedstage.data", room}
    assert reachable("x", package=package) == found
    chosen = frozenset({f"{room}.iid"})
    assert reachable("x", chosen, package=package) == found | {f"{room}.iid", "fedstage.a"}


def test_what_only_some_recipes_choose_is_reached_by_these_only(tmp_path):
    (chosen,) = EfficientNet.uses.values()
    name = f"fedstage.{chosen}"
    files = {"stages/__init__.py": "", "stages/x.py": f"import {name}"}
    files |= {"models/__init__.py": "", "models/pretrained.py": ""}
    package = written(tmp_path / "fedstage", files)
    found = {"fedstage.stages.x", "fedstage.models"}
    assert reachable("x", package=package) == found
    assert reachable("x", frozenset({name}), package=package) == found | {name}


def test_code_that_differs_has_another_digest(tmp_path):
    for number, (one, other) in enumerate([
        ("x = 1", "x = 2"),
        ("x = 1", "x = 1.0"),
        ("x = 1", "x = True"),
        ("x = None", "x = ()"),
        ("return_ = f()", "return_ = f(None)"),
        ("def f():\n    return", "def f():\n    return None"),
        ("'a docstring'\nx = 'b'", "'a docstring'\nx = 'c'"),
        ("def f(a, b=1): ...", "def f(a, *, b=1): ...",),
        ("x = a if b else c", "x = c if b else a"),
        ("x = f'{a}'", "x = f'{a!r}'"),
        ("x = -1", "x = 1"),
        ("x = {**a}", "x = {None: a}"),
        ("for x in y:\n    'not a docstring'", "for x in y:\n    'nor this one'"),
    ]):  # fmt: skip
        files = {"one.py": one, "other.py": other}
        package = written(tmp_path / str(number) / "fedstage", files)
        digests = [module_digest(f"fedstage.{name}", package) for name in ("one", "other")]
        assert digests[0] != digests[1], one


def test_code_that_is_the_same_has_the_same_digest(tmp_path):
    for number, (one, other) in enumerate(
        [
            ("x = 1", "# A comment\nx  =  1  # and another"),
            ("x = 'a' 'b'", 'x = ("ab")'),
            ("'doc'\nx = 1", "x = 1"),
            ("class C:\n    'doc'\n    x = 1", "class C:\n    'other'\n    x = 1"),
            ("async def f():\n    'doc'\n    return 1", "async def f():\n    return 1"),
            ("def f(a, b): return a", "def f(\n    a,\n    b,\n):\n    return a"),
            ("x = 1_000", "x = 1000"),
        ]
    ):
        files = {"one.py": one, "other.py": other}
        package = written(tmp_path / str(number) / "fedstage", files)
        digests = [module_digest(f"fedstage.{name}", package) for name in ("one", "other")]
        assert digests[0] == digests[1], one


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


def test_fingerprints_need_no_torch():
    code = (
        "import sys, fedstage.plan.source; print(*{'torch', 'pyarrow', 'numpy'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_all_choices_are_known_whatever_else_is_imported():
    code = "from fedstage.plan.source import optional_modules; print(*sorted(optional_modules()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == optional_modules()
