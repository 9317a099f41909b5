"""The source of each stage of each configuration, and how code is read."""

import ast
import builtins
import json
import os
import shutil
import subprocess
import symtable
import sys
from collections import defaultdict
from importlib import import_module
from itertools import product
from types import FunctionType
from typing import TypeVar, get_origin

import pytest
from tests.shared.settings import CLIENT, SERVER, one_shot

from fedstage.plan import one_shot as shot
from fedstage.plan import training_folder
from fedstage.plan.members import parse_evaluated, parse_sampled
from fedstage.plan.one_shot import generated_images
from fedstage.plan.source import (
    DECLARING,
    Source,
    chosen_modules,
    optional_modules,
    reachable,
    read_again,
    source_of,
)
from fedstage.plan.stages import GRAPH, OF_ROUNDS, RESULTS, STAGES, module_of
from fedstage.plan.syntax import PACKAGE, facts, imports, module_digest, modules, needed_by
from fedstage.plan.training import DISTILLATIONS
from fedstage.settings.base import Settings, subclasses
from fedstage.settings.data import DataOption
from fedstage.settings.local_training import Scaffold
from fedstage.settings.models import EfficientNet, InitialModel
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.one_shot_clients import Int8
from fedstage.settings.recipes import LocalRecipe, Recipe

BASE = one_shot(data={"digits": {"held_out": 100}}, partition={"dirichlet": {"alpha": 1.0}})
DISTILLED = {"global_models": 2, "ensemble": {"aggregated": {"checkpoints": 2}},
             "global": "designated", "server": SERVER}  # fmt: skip
TAUGHT_BY_CLIENTS = DISTILLED | {"ensemble": "clients"}
SERVED = {"global_models": 2, "server_model": True, "server": SERVER}


def a_recipe(**changes):
    return Recipe.model_validate(BASE | {"participants": 2} | changes)


def one_shot(**changes):
    return OneShotRecipe.model_validate(BASE | {"aggregator_fraction": 0.1} | changes)


RECIPES = {name: a_recipe(**changes) for name, changes in {
    "fedavg": {},
    "fedprox": {"local": "fedprox"},
    "scaffold": {"local": "scaffold"},
    "fednova": {"local": "fednova"},
    "focal": {"client": CLIENT | {"loss": "focal"}},
    "adam": {"aggregation": {"server_optimizer": "adam"}},
    "yogi": {"aggregation": {"server_optimizer": "yogi"}},
    "sparse": {"compression": "stc"},
    "resnet20": {"model": "resnet20"},
    "wrn16_2": {"model": "wrn16_2"},
    "iid": {"partition": "iid"},
    "distilled": DISTILLED,
    "taught_by_clients": TAUGHT_BY_CLIENTS,
    "bayesian": DISTILLED | {"ensemble": "bayesian"},
    "heads": DISTILLED | SERVED | {"model": {"cnn_small": {"head": {}}}, "head_sharing": True},
    "features": SERVED | {"local": "gkt", "model": "resnet_upper",
                          "architectures": ["resnet_upper", "resnet_lower"]},
    "averaged": DISTILLED | {"server": SERVER | {"swa": {"every": 1}}},
    "judged": TAUGHT_BY_CLIENTS | {
        "data": {"digits": {"held_out": 100, "server_validation": 10}},
        "server": SERVER | {"drop_worst": "as_published", "early_stopping": {}},
    },
}.items()}  # fmt: skip
YOGI = {"federated": {"rounds": 2, "server_optimizer": "yogi"}}
ONE_SHOT = {
    "averaging": one_shot(),
    "mlp": one_shot(aggregator="mlp", aggregator_training={"federated": {"rounds": 2}}),
    "mlp by yogi": one_shot(aggregator="mlp", aggregator_training=YOGI),
}  # fmt: skip
STUDENTS = {
    "fedkd": one_shot(aggregator="weighted", distillation="l1", server=SERVER, student="resnet8"),
    "fedet_os": one_shot(aggregator="confidence", distillation="fedet", server=SERVER),
}
OF_IMAGES = {"public": "generated", "server": SERVER | {"steps": None, "epochs": 2}}
GENERATING = {
    "cvae": one_shot(generator="cvae", distillation="labels", **OF_IMAGES),
    "dense": one_shot(generator="dense", distillation="cotrained", model="resnet8", **OF_IMAGES),
    "coboosting": one_shot(generator="coboosting", distillation="cotrained", **OF_IMAGES),
}
ODDS = a_recipe(**DISTILLED | {"ensemble": "odds"})
CLOSED = one_shot(distillation="closed_form", model="resnet8")

TEACHING = [stage.name for stage in DISTILLATIONS]
#: The stages of discriminators, by whose odds votes are weighted.
OF_ODDS = ("public_generator", "client_discriminator", "client_odds")
#: The stages that generate images, by who trains what generates them.
OF_GENERATORS = {"clients": ("client_generator", "generated"), "server": ("synthesised",)}
#: The stages of one-shot recipes, and of those with a student.
OF_ONE_SHOT = ("aggregator", "one_shot_evaluation")
OF_STUDENTS = ("distilled_model", "one_shot_evaluation")
#: The stages above, which are asked about settings that have them only.
OF_SOME = {*OF_ONE_SHOT, *OF_STUDENTS, *OF_ODDS, "feature_moments", "closed_form_model"}.union(
    *OF_GENERATORS.values()
)
DRAWN = ("gaussian_3", "dirichlet_3")
#: The stages that have a source, which segments have not: they read that of the stages they run.
HAVING = [stage.name for stage in (*GRAPH, *RESULTS)] + ["choice"]
#: The stages that make of metrics what people read.
OF_RUNS = {stage.name for stage in RESULTS} - {"properties", "simulation", "round_times", "clients"}


def asked():
    """Yield jobs, as stages and names, their stages, settings, and what is chosen beside these."""
    of_rounds = {stage.name: stage for stage in OF_ROUNDS}
    for stage in {*HAVING} - OF_SOME:
        alike = STAGES[stage] in RESULTS or stage in ("dataset", "participation", "choice")
        shown = "distillation" if stage in TEACHING else stage
        for name in ["fedavg"] if alike else RECIPES:
            if stage not in of_rounds or of_rounds[stage].used(RECIPES[name]):
                yield (shown, name), stage, RECIPES[name]
    for stages, recipes in (
        (OF_ONE_SHOT, ONE_SHOT), (OF_STUDENTS, STUDENTS), (["distillation"], {"odds": ODDS}),
        (OF_ODDS, {"odds": training_folder.client_odds(ODDS).job.config}),
        (["feature_moments"], {"closed": shot.feature_moments(CLOSED, 0).job.config}),
        (["closed_form_model"], {"closed": CLOSED}),
    ):  # fmt: skip
        yield from (((stage, name), stage, recipes[name]) for stage in stages for name in recipes)
    for name, recipe in GENERATING.items():
        for stage in OF_GENERATORS[recipe.generator.trained_by]:
            yield (stage, name), stage, generated_images(recipe).job.config
    for name in ("cifar10", {"parquet": {"folder": "x"}}):
        option = DataOption.model_validate({"data": name})
        yield ("dataset", option.data.name), "dataset", option
    for name in ("clients", "aggregated_2"):
        yield ("evaluation", name), "evaluation", RECIPES["fedavg"], parse_evaluated(name)
    for name, members in product(("fedavg", "distilled"), ("clients", "aggregated", *DRAWN)):
        drawn = filter(None, [parse_sampled(members)])
        yield ("logits", f"{name} {members}"), "logits", RECIPES[name], *drawn


def source(stage, *settings):
    """Return the source of a stage for settings and what is beside them."""
    return Source(stage, frozenset().union(*map(chosen_modules, settings)))


def counted(stage, *settings):
    """Return the modules that count for a stage, without the package's name."""
    return {name.removeprefix("fedstage.") for name in reachable(source(stage, *settings))}


def sources(package):
    return {job: source(*of).parts(package) for job, *of in asked()}


def copied(folder):
    """Return a copy of the package; each in a folder of its own, by which sources are kept."""
    ignored = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(PACKAGE, folder / "fedstage", ignore=ignored)


@pytest.fixture(scope="module")
def before():
    """Return the sources of the package as it is."""
    return sources(PACKAGE)


@pytest.fixture
def changed(tmp_path_factory, before):
    """Return a function that edits a copy and returns the jobs with another source."""

    def edit(*edits):
        package = copied(tmp_path_factory.mktemp("edited"))
        for file, old, new in edits:
            text = (package / file).read_text()
            assert old in text, (file, old)
            (package / file).write_text(text.replace(old, new))
        after = sources(package)
        return {job for job in before if before[job] != after[job]}

    return edit


# --- which edits change the source ----------------------------------------------------------------


def test_no_comment_docstring_or_formatting_of_any_module_counts(tmp_path, before):
    package = copied(tmp_path)
    for path in package.rglob("*.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if hasattr(node, "body") and isinstance(node.body, list) and node.body:
                first = node.body[0]
                value = getattr(first, "value", None)
                if isinstance(getattr(value, "value", None), str) and isinstance(first, ast.Expr):
                    first.value.value = "Other words."
        path.write_text("# A comment.\n" + ast.unparse(tree))
    assert sources(package) == before


def test_an_edit_changes_the_source_of_jobs_for_which_its_module_counts(changed, before):
    """What counts for which job is in the tables below."""
    names = {job: counted(*of) for job, *of in asked()}
    for file, old, new, module in (
        ("algorithm/local_trainers/fedprox.py", "def gradient_term(self,",
         "def gradient_term(self, more,", "algorithm.local_trainers.fedprox"),
        ("training/loop.py", "rate_sum += rates", "rate_sum += 2 * rates", "training.loop"),
        ("models/image_generator.py", "class Discriminator", "HALF = 2\nclass Discriminator",
         "models.image_generator"),
        ("protocol/server.py", "round_ > server.buffer.after", "round_ > server.buffer.after + 1",
         "protocol.server"),
        ("protocol/teaching.py", "return (0,)\n", "return (1,)\n", "protocol.teaching"),
        ("plan/data_files.py", "clients.parquet", "who.parquet", "plan.data_files"),
        ("storage/files.py", "import os\n", "import os\nTRIES = 3\n", "storage.files"),
    ):  # fmt: skip
        expected = {job for job in before if module in names[job]}
        assert changed((file, old, new)) == expected != set(), file


# --- what counts for which stages and settings ----------------------------------------------------
def each(stages, *recipes):
    return set(product(stages, recipes))


TRAINED = ("local_training", "aggregation")
TAUGHT = ("distillation",)
MLP = ("mlp", "mlp by yogi")
FITTED = each(("aggregator",), *MLP)
#: What is drawn; the recipe of `bayesian` names what draws.
OF_DRAWN = {("logits", f"{name} {kind}") for name in ("fedavg", "distilled") for kind in DRAWN}
OF_DRAWN |= each(("logits",), "bayesian")
#: Modules, by their rooms, and the jobs for which they count.
COUNTED = {
    "algorithm.local_trainers": {
        "fedprox": each(TRAINED, "fedprox"),
        "scaffold": each(TRAINED, "scaffold"),
        "fednova": each(TRAINED, "fednova"),
    },
    "algorithm.exchange": {"compression": each((*TRAINED, "evaluation"), "sparse")},
    "algorithm.aggregation.server_optimizers": {
        "adaptive": each(TRAINED[1:], "adam", "yogi") | FITTED,
    },
    "algorithm.discriminators": {"": each(OF_ODDS[:2], "odds")},
    "algorithm.ensemble_trainers": {
        "odds": each(TAUGHT[:1], "odds"),
        # What is scored and asked of taught recipes was made from students in any case.
        "clients": each((*TAUGHT, "logits", "evaluation"), "taught_by_clients", "judged")
        | {("evaluation", "clients")},
        "sampling": OF_DRAWN | each(("distillation", "evaluation"), "bayesian"),
    },
    "algorithm.global_trainers": {
        "drop_worst": each(TAUGHT, "judged"),
        "kept_weights": each(TAUGHT, "averaged", "judged"),
        "transfers.fedet": each(("distilled_model",), "fedet_os"),
    },
    "algorithm.one_shot": {
        "aggregators.mlp": each(OF_ONE_SHOT, *MLP),
        "fitting": each(("aggregator",), *ONE_SHOT),
        "aggregator_training.federated": FITTED,
        "generators.cvae": each(OF_GENERATORS["clients"], "cvae"),
        "generators.coboosting": each(OF_GENERATORS["server"], "coboosting"),
    },
    "training.losses": {"focal": each(("local_training", "local_model"), "focal")},
    "data": {
        "partitions.schemes": each(("partition",), "iid"),
        "datasets.published": each(("dataset",), "cifar10"),
    },
}  # fmt: skip
#: Stages that count how clients train and what they exchange, and that do not.
OF_PLAN = {"scores", "costs", "properties", "simulation", "report"}
NOT_OF_PLAN = {"dataset", "table", "figure"}
#: Modules, and the stages for which they count, with all settings or those named.
COUNTED_OF_STAGES = {
    # Clients of `features` receive from a server that is trained as a student is.
    "protocol.server": (
        {*TAUGHT, "feature_training", "distilled_model", "local_training", *OF_PLAN}, None
    ),
    "algorithm.global_trainers.distillation": (
        {*TAUGHT, "synthesised"},
        {name for name, recipe in RECIPES.items() if recipe.global_trainer}
        | {"dense", "coboosting", "odds"},
    ),
    "algorithm.global_trainers.student": (
        {*TAUGHT, "feature_training", "distilled_model", "local_training"}, None
    ),
    # Generated images count what travels in tables of the same columns.
    "algorithm.one_shot.aggregators": (
        {*OF_ONE_SHOT, *OF_STUDENTS, "generated", "closed_form_model"}, None
    ),
    # Aggregation imports the types of the loop with the local trainers.
    "training.loop": (
        {"local_model", *TAUGHT, "aggregation", "local_training", "distilled_model",
         "feature_training", "client_generator", "generated"}, None
    ),
    "models.architectures.resnet": (
        {*OF_STUDENTS, "base_model", "initial_model", "local_training", "aggregation", "logits",
         "evaluation", "retention", "client_accuracy", "local_model",
         "local_evaluation", "client_logits", "quantised_model", "feature_training", "synthesised",
         "feature_moments"},
        {"resnet20", "features", "fedkd", "dense", "closed"},
    ),
    "algorithm.measures.scores": (
        {"evaluation", "client_accuracy", "local_evaluation", "one_shot_evaluation"}, None
    ),
}  # fmt: skip


def test_code_counts_for_the_stages_and_settings_that_can_run_it_only():
    names = {job: counted(*of) for job, *of in asked()}

    def jobs_of(name):
        return {job for job in names if name in names[job]}

    for room, modules_of in COUNTED.items():
        for module, expected in modules_of.items():
            assert jobs_of(f"{room}.{module}".rstrip(".")) == expected, (room, module)
    for name, (stages, settings) in COUNTED_OF_STAGES.items():
        found = jobs_of(name)
        assert {stage for stage, _ in found} == stages, name
        assert settings is None or {of for _, of in found} == settings, name
    student = jobs_of("algorithm.global_trainers.student")
    assert ("local_training", "features") in student
    assert ("local_training", "fedavg") not in student
    assert jobs_of("storage.files") == names.keys()
    layers = jobs_of("models.layers")
    assert {of for _, of in layers} >= RECIPES.keys()
    assert not {stage for stage, _ in layers} & {"dataset", "partition", "participation", *OF_RUNS}
    for module in ("plan.data_files", "protocol.teaching"):
        stages = {stage for stage, _ in jobs_of(module)}
        assert stages >= OF_PLAN
        assert not stages & NOT_OF_PLAN
    assert not {name for counting in names.values() for name in counting if "settings" in name}


def with_data(**keys):
    return DataOption.model_validate({"data": {"digits": keys}})


shared = LocalRecipe.model_fields.keys() & Recipe.model_fields.keys()
LOCAL = LocalRecipe(**{name: getattr(RECIPES["fedavg"], name) for name in shared})
INT8 = LOCAL.model_copy(update={"quantisation": Int8(name="int8")})
KRUM = a_recipe(participants=3, aggregation={"rule": {"krum": {"faulty": 0}}})
LATE = a_recipe(staleness={"cyclic": {"delays": [0, 1]}})
EXCHANGING = {"ensemble": "clients", "server": SERVER}
KEPT = a_recipe(local={"digest": {"cache": {}}}, **EXCHANGING)
ANEW = a_recipe(local="digest", **EXCHANGING)
FREE, FREE_AS_RELEASED = (
    a_recipe(**TAUGHT_BY_CLIENTS | {"public": "generated", "generator": name})
    for name in ("fedftg", "fedftg_as_released")
)
FILE_OF_WEIGHTS = {"file": "a.pth", "sha256": "0" * 8}
UNTRAINED, PRETRAINED = (
    InitialModel(model=EfficientNet(name="efficientnet_b0", **more), seed=0)
    for more in ({}, {"weights": FILE_OF_WEIGHTS})
)
FLIPPED = {"held_out_augmentation": "flip"}
IN_INT8 = ("quantised_model", "client_logits", "local_evaluation")
FEDAVG = RECIPES["fedavg"]
OF_FREE = "data_free_distillation"
#: Modules, and stages of settings for which they count, and do not.
COUNTED_OF_SETTINGS = [
    ("models.int8", product(IN_INT8, [INT8]),
     [*product(IN_INT8, [LOCAL]), ("local_model", INT8)]),
    ("algorithm.aggregation.rules.krum", [("aggregation", KRUM)],
     [("aggregation", FEDAVG), ("local_training", KRUM)]),
    ("algorithm.aggregation.rules", [("aggregation", KRUM)], [("aggregation", FEDAVG)]),
    ("algorithm.aggregation.rules.elementwise", [], [("aggregation", KRUM)]),
    ("algorithm.aggregation.asynchronous", [("aggregation", LATE)], [("aggregation", FEDAVG)]),
    ("training.public_images", [("dataset", with_data(held_out=9, **FLIPPED))],
     [("dataset", with_data(held_out=9)),
      *product(["local_training", "partition"], [a_recipe(data={"digits": FLIPPED})])]),
    ("algorithm.exchange.caching", [("aggregation", KEPT)], [("aggregation", ANEW)]),
    *((f"algorithm.global_trainers.{name}", product([OF_FREE], [FREE, FREE_AS_RELEASED]),
       [("distillation", RECIPES["taught_by_clients"])])
      for name in ("data_free", "generators", "generators.fedftg")),
    ("algorithm.global_trainers.generators.fedftg_as_released", [(OF_FREE, FREE_AS_RELEASED)],
     [(OF_FREE, FREE)]),
    ("models.pretrained", [("initial_model", PRETRAINED)], [("initial_model", UNTRAINED)]),
    ("models.architectures.torchvision_models", [("initial_model", UNTRAINED)], []),
]  # fmt: skip


def test_code_counts_for_stages_of_settings_that_need_it_only():
    for name, having, lacking in COUNTED_OF_SETTINGS:
        for pairs, expected in ((having, True), (lacking, False)):
            for stage, settings in pairs:
                assert (name in counted(stage, settings)) == expected, (name, stage)


# --- reachable modules ----------------------------------------------------------------------------

#: What sources import, and then what each stage imports.
IMPORTS = """
import importlib, json, sys
from fedstage.plan.source import optional_modules
from fedstage.plan.stages import module_of
heavy = {"torch", "pyarrow", "numpy"} & {*sys.modules}
found = {"optional": sorted(optional_modules()), "heavy": sorted(heavy), "loaded": {}}
for stage in sys.argv[1:]:
    for name in [name for name in sys.modules if name.startswith("fedstage.")]:
        if not name.startswith("fedstage.settings"):  # which declares only, and takes long
            del sys.modules[name]
    importlib.import_module(module_of(stage))
    loaded = [name for name in sys.modules if name.partition(".")[0] == "fedstage"]
    found["loaded"][stage] = loaded
print(json.dumps(found))
"""


def test_what_a_stage_imports_is_reachable_or_declares_or_is_chosen():
    """Sources need no torch, and all choices are there whatever else is imported."""
    command = [sys.executable, "-c", IMPORTS, *STAGES]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert (set(found["optional"]), found["heavy"]) == (optional_modules(), [])
    behind_optional, waiting = set(), set(optional_modules())
    while waiting:
        behind_optional |= waiting
        waiting = set().union(*map(imports, waiting)) - behind_optional
    together = defaultdict(set)  # what the stages of a module reach
    for stage in found["loaded"]:
        together[module_of(stage)] |= {name.partition(":")[0] for name in reachable(Source(stage))}
    for stage, loaded in found["loaded"].items():
        names, reached = set(loaded), together[module_of(stage)]
        declaring = {name for name in names if name.startswith(DECLARING) or name == "fedstage"}
        assert names - reached - declaring <= behind_optional, stage
        assert reached <= names, stage


def global_names(table):
    """Yield the names that code takes from the top of its module, or from Python."""
    yield from (symbol.get_name() for symbol in table.get_symbols() if symbol.is_global())
    if table.get_type() == "module":
        yield from (one.get_name() for one in table.get_symbols() if one.is_referenced())
    for below in table.get_children():
        yield from global_names(below)


def test_the_part_of_a_stage_has_what_its_function_needs_and_no_other_stage():
    for stage in STAGES:
        body = ast.parse(modules()[module_of(stage)].read_text()).body
        part = needed_by(stage, body)
        text = ast.unparse(ast.Module(part, []))
        table = symtable.symtable(text, stage, "exec")
        there = {one.get_name() for one in table.get_symbols() if one.is_assigned()}
        there |= {one.get_name() for one in table.get_symbols() if one.is_imported()}
        missing = set(global_names(table)) - there - set(dir(builtins))
        assert not missing, stage
        functions = {one.name for one in part if isinstance(one, ast.FunctionDef)}
        assert functions & STAGES.keys() == {stage}, stage


#: What jobs take of `settings` and `plan` besides classes: it reads recipes and names files.
READING = {
    "settings.base.implementation", "settings.base.called", "settings.base.is_plugin",
    "settings.models.check_size",
    "settings.plugins.describe_error", "settings.plugins.line_of_plugin",
    "plan.members.parse_evaluated", "plan.members.parse_sampled",
    "plan.graph.files_in", "plan.stages.module_of",
    "plan.segment_rules.outputs_of", "plan.training.local_training",
    "plan.results.RESULTS", "plan.syntax.cache_folder",
}  # fmt: skip
#: What classes of settings do besides checking and completing themselves.
DOING = {"names", "modules", "implemented_in", "are_images", "holds_out", "has_clients", "bounds"}
#: What features ask of the data set that is encoded, and encoders of their weights.
DOING |= {"has_own_test", "centres", "clients_hint", "server_validation", "in_folder"}


def test_what_runs_in_jobs_takes_nothing_of_settings_and_plan_that_computes():
    """It would determine results, and count in the source of none; `protocol` is the place."""
    taken = set()
    for stage in (name for name, command in STAGES.items() if command not in RESULTS):
        for module in reachable(Source(stage, optional_modules())):
            taken.update(facts(module)[1:])
    rooms = ("fedstage.settings.", "fedstage.plan.")
    for name in (one for one in taken - modules().keys() if one.startswith(rooms)):
        module, _, own = name.rpartition(".")
        value = getattr(import_module(module), own)
        kind = isinstance(value, type) or get_origin(value) or isinstance(value, TypeVar)
        assert kind or name.removeprefix("fedstage.") in READING, name
    for settings in subclasses(Settings):
        if settings.__module__.startswith(rooms):
            public = {name for name, value in vars(settings).items() if not name.startswith("_")
                      and isinstance(value, FunctionType | classmethod | property)}  # fmt: skip
            assert public <= DOING, settings


# --- a module -------------------------------------------------------------------------------------


def written(folder, files):
    """Write a package of the given files, and return its folder."""
    for name, text in {"__init__.py": "", **files}.items():
        path = folder / "fedstage" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "fedstage"


def test_imports_of_a_module(tmp_path):
    for number, (name, text, expected) in enumerate([
        ("user", "import json, torch, fedstages.a", set()),
        ("user", "import fedstage.a", {"a"}),
        ("user", "import fedstage.kind.one as x", {"kind", "kind.one"}),
        ("user", "from fedstage import a, b", {"a", "b"}),
        ("user", "from fedstage.a import f, g", {"a"}),
        ("user", "from fedstage.kind import one, f", {"kind", "kind.one"}),
        ("user", "from fedstage.kind.two import f", {"kind", "kind.two"}),
        ("user", "def f():\n    from fedstage.a import g", {"a"}),
        ("user", "class C:\n    async def f(self):\n        import fedstage.a", {"a"}),
        ("user", "try:\n    import fedstage.a\nexcept E:\n    import fedstage.b", {"a", "b"}),
        ("user", "match 1:\n    case 1:\n        import fedstage.a", {"a"}),
        ("user", "with f():\n    for x in y:\n        import fedstage.a", {"a"}),
        ("user", "if x: pass\nelif y:\n    import fedstage.a\nelse: import fedstage.b", {"a", "b"}),
        ("user", "if TYPE_CHECKING:\n    import fedstage.a", set()),
        ("user", "if typing.TYPE_CHECKING:\n    from fedstage.a import f", set()),
        ("user", "if TYPE_CHECKING:\n    import fedstage.a\nelse:\n    import fedstage.b", {"b"}),
        ("user", "if TYPE_CHECKING:\n    import fedstage.a\nimport fedstage.a", {"a"}),
        ("user", "if not TYPE_CHECKING:\n    import fedstage.a", {"a"}),
        ("kind.user", "from . import one", {"kind", "kind.one"}),
        ("kind.user", "from .one import f", {"kind", "kind.one"}),
        ("kind.user", "from ..a import f", {"a"}),
        ("kind.__init__", "from .one import f", {"kind", "kind.one"}),
    ]):  # fmt: skip
        others = ("a.py", "b.py", "kind/__init__.py", "kind/one.py", "kind/two.py")
        files = {**dict.fromkeys(others, ""), f"{name.replace('.', '/')}.py": text}
        package = written(tmp_path / str(number), files)
        found = imports(f"fedstage.{name.removesuffix('.__init__')}", package)
        assert found - {"fedstage"} == {f"fedstage.{other}" for other in expected}, text


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
        package = written(tmp_path / str(number), files)
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
    package = written(tmp_path, {"one.py": CODE})
    assert module_digest("fedstage.one", package).startswith("d8ca77fd49196626")


def test_a_part_changes_with_what_its_function_needs_alone(tmp_path):
    text = """
from fedstage.a import one, two
import json
LIMIT = 3
OTHER: int = 4
def below(): return one(LIMIT)
def f(): return below()
def g(): return two(json.loads(OTHER))
"""
    found = []
    for number, (old, new) in enumerate([
        ("", ""), ("OTHER: int = 4", "OTHER: int = 5"), ("two(", "2 * two("),
        ("LIMIT = 3", "LIMIT = 4"), ("one(", "-one("), ("import json", "import json as j"),
        ("OTHER:", "print()\nOTHER:"),
    ]):  # fmt: skip
        package = written(tmp_path / str(number), {"m.py": text.replace(old, new), "a.py": ""})
        found.append([facts(f"fedstage.m:{name}", package) for name in "fg"])
    changed = [[now != before for now, before in zip(one, found[0], strict=True)] for one in found]
    assert changed[1:] == [
        [False, True], [False, True], [True, False], [True, False], [False, True], [True, True],
    ]  # fmt: skip
    assert found[0][0][1:] == ["fedstage.a", "fedstage.a.one"]


def test_what_settings_fix_of_an_alternative_is_in_the_source_of_who_chooses_it(monkeypatch):
    """Class variables are in no recipe, and `settings` is in no source."""
    sources = {name: source_of(RECIPES[name], "local_training") for name in ("fedavg", "scaffold")}
    before = {name: one.parts() for name, one in sources.items()}
    monkeypatch.setattr(Scaffold, "exchanges", "logits")
    read_again()
    after = {name: one.parts() for name, one in sources.items()}
    assert after["fedavg"] == before["fedavg"]
    changed = {part for part, code in after["scaffold"].items() if code != before["scaffold"][part]}
    assert changed == {"fedstage.algorithm.local_trainers.scaffold"}
    monkeypatch.undo()
    read_again()
    assert sources["scaffold"].parts() == before["scaffold"]


def test_what_classes_fix_is_the_same_in_every_process():
    """Or all results would be made again; properties and sets are written in another way each."""
    command = [sys.executable, "-c", "from fedstage.plan import source; print(source._constants())"]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, check=True,
                       env=os.environ | {"PYTHONHASHSEED": seed}).stdout
        for seed in "12"
    )  # fmt: skip
    assert first == second
    assert "exchanges" in first
