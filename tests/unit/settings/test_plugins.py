"""Alternatives from files of the user's own and from installed packages."""

import json
import os
import subprocess
import sys
from importlib import import_module

import pytest

from fedstage.data.partitions.schemes import assign
from fedstage.errors import FedstageError
from fedstage.settings.base import alternatives, choices, implementation
from fedstage.settings.config_file import schemas
from fedstage.settings.local_training import LocalTrainer
from fedstage.settings.plugins import faults_of, load_plugins
from fedstage.settings.recipes import Recipe
from fedstage.settings.registry import PLUGINS
from fedstage.settings.validation import validate

PLUGIN = """
from typing import Literal

from fedstage.settings.base import Rate
from fedstage.settings.local_training import LocalTraining


class Mine(LocalTraining):
    \"\"\"A trainer of my own.\"\"\"

    name: Literal["mine"]
    rate: Rate = 1.0


def Trainer(settings): ...
"""
RECIPE = {
    "data": "digits",
    "clients": 2,
    "participants": 1,
    "partition": "iid",
    "model": "logistic_regression",
    "client": {"epochs": 1, "batch_size": 1, "learning_rate": 1.0},
    "seed": 0,
}


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Write files, load some of them, and forget them at the end."""
    monkeypatch.chdir(tmp_path)

    def load(files, *named):
        for name, code in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code)
        load_plugins(named)

    yield load
    load_plugins([])


def a_recipe(**local):
    return validate(Recipe, RECIPE | {"local": {"mine": local}}, "here")


def test_a_plugin_is_an_alternative_like_any_other(load):
    Recipe.model_validate(RECIPE)  # so that its schema is built before
    load({"mine.py": PLUGIN}, "mine.py")
    recipe = a_recipe(rate=2.0)
    assert recipe.model_dump(exclude_defaults=True)["local"] == {"name": "mine", "rate": 2.0}
    assert recipe == Recipe.model_validate(recipe.model_dump(by_alias=True))
    assert type(recipe.local) in alternatives(LocalTrainer)
    assert implementation(recipe.local).Trainer.__module__ == "fedstage_plugins.mine"
    for wrong, fault in (
        ({"rat": 2.0}, "here: local.rat = 2.0: unknown key; did you mean 'rate'?"),
        ({"rate": 0.0}, "here: local.rate = 0.0: must be greater than 0"),
    ):
        with pytest.raises(FedstageError) as raised:
            a_recipe(**wrong)
        assert str(raised.value) == fault
    with pytest.raises(FedstageError, match=r"'mime': unknown; .*'mine'; did you mean 'mine'"):
        validate(Recipe, RECIPE | {"local": "mime"}, "here")
    text = json.dumps(schemas()["config"]["$defs"])
    assert '"Mine"' in text
    assert "A trainer of my own" in text


def test_a_data_set_of_a_plugin_may_have_clients_which_is_known_when_it_is_read(load):
    code = """
from typing import Literal

from fedstage.settings.data_sets import DataSet


class Visits(DataSet):
    name: Literal["visits"]


def load(settings, folder): ...
"""
    load({"visits.py": code}, "visits.py")
    recipe = validate(Recipe, RECIPE | {"data": "visits", "partition": "natural"}, "here")
    assert recipe.partition.name == "natural"
    with pytest.raises(FedstageError, match="the data set has no client column"):
        assign(recipe.partition, None, 2, None, None)


def test_plugins_that_are_loaded_no_longer_are_forgotten(load):
    load({"mine.py": PLUGIN}, "mine.py")
    a_recipe()
    before = alternatives(LocalTrainer)
    load_plugins([])
    assert len(alternatives(LocalTrainer)) == len(before) - 1
    with pytest.raises(FedstageError, match=r"local = 'mine': unknown"):
        a_recipe()
    assert "Mine" not in schemas()["config"]["$defs"]


def test_the_files_of_a_folder_import_one_another_but_leave_nothing_there(load, tmp_path):
    own = PLUGIN.replace("def Trainer(settings): ...", "from ._common import Trainer")
    files = {"my/mine.py": own, "my/_common.py": "from .deep.er import Trainer\n"}
    load(files | {"my/deep/er.py": "def Trainer(settings): ...\n"}, "my/")
    assert implementation(a_recipe().local).Trainer.__module__ == "fedstage_plugins.my.deep.er"
    names = {"my.mine", "my._common", "my.deep.er"}
    assert set(PLUGINS.files) == {f"fedstage_plugins.{name}" for name in names}
    assert not list(tmp_path.rglob("__pycache__"))


TRAINER = "def Trainer(settings): ..."
HELPER = "def Trainer(settings): ...\n"
BASE = """
from fedstage.algorithm import local_trainers

class LocalTrainer(local_trainers.LocalTrainer):
    def helper(self): ...
"""
HOOK = "    def payload(self, trained, state, client): ...\n"
MISSPELT = "    def gradient_trem(self, start, state, client): ...\n"


def trainer(body, module="fedstage.algorithm.local_trainers"):
    """The plugin with a trainer of this body."""
    of = f"from {module} import LocalTrainer\n\nclass Trainer(LocalTrainer):\n"
    return PLUGIN.replace("def Trainer(settings): ...", of + body)


BAD_NAME = PLUGIN.replace('"mine"', '"my-own"')
FAULTS = {
    "no such path": ({}, ["a.py"], "config.yaml: plugins = 'a.py': no such Python file or folder"),
    "no Python": ({"a.txt": ""}, ["a.txt"], "plugins = 'a.txt': no such Python file or folder"),
    "an empty folder": ({"a/b.txt": ""}, ["a"], "plugins = 'a': has no Python file"),
    "two of one place": (
        {"a/my/x.py": PLUGIN, "b/my/y.py": PLUGIN},
        ["a/my", "b/my"],
        "plugins = 'b/my': another plugin has a file or folder of this name",
    ),
    "an import": (
        {"a.py": "\nimport nowhere\n"},
        ["a.py"],
        "a.py: cannot be imported: a.py, line 2: ModuleNotFoundError: No module named 'nowhere'",
    ),
    "an import of a helper": (
        {"a/b.py": "from ._c import d\n", "a/_c.py": "1 / 0\n"},
        ["a"],
        "a/b.py: cannot be imported: a/_c.py, line 1: ZeroDivisionError: division by zero",
    ),
    "the syntax": ({"a.py": "x = (\n"}, ["a.py"], "a.py: cannot be imported: SyntaxError: '(' was"),
    "no settings": ({"a.py": HELPER}, ["a.py"], "a.py: no settings class: define one with"),
    "two of one name": (
        {"a.py": PLUGIN, "b.py": PLUGIN},
        ["a.py", "b.py"],
        "b.py: name = 'mine': a.py has an alternative of this name",
    ),
    "a built-in's name": (
        {"a.py": PLUGIN.replace('"mine"', '"fedprox"')},
        ["a.py"],
        "a.py: name = 'fedprox': is the name of a built-in alternative",
    ),
    "no good name": ({"a.py": BAD_NAME}, ["a.py"], "a.py: name = 'my-own': must be letters"),
    "no implementation": (
        {"a.py": PLUGIN.replace("def Trainer(settings): ...", "")},
        ["a.py"],
        "a.py: no Trainer, which the module of Mine must define",
    ),
    "a misspelt function": (
        {"a.py": PLUGIN.replace("def Trainer", "def Trianer")},
        ["a.py"],
        "a.py: no Trainer, which the module of Mine must define; did you mean 'Trianer'?",
    ),
    "a misspelt hook": (
        {"a.py": trainer(MISSPELT)},
        ["a.py"],
        "a.py: Trainer.gradient_trem: no such hook; did you mean 'gradient_term'?",
    ),
    "a misspelt hook beside another": (
        {"a.py": trainer(f"{MISSPELT}{HOOK}")},
        ["a.py"],
        "a.py: Trainer.gradient_trem: no such hook; did you mean 'gradient_term'?",
    ),
    "a misspelt hook of a plugin's base": (
        {"a/a.py": trainer(HOOK, "._b"), "a/_b.py": BASE + MISSPELT},
        ["a"],
        "a/a.py: Trainer.gradient_trem: no such hook; did you mean 'gradient_term'?",
    ),
    "a loss that is not declared": (
        {"a.py": trainer("    def objective(self, task): ...\n")},
        ["a.py"],
        "a.py: Trainer.objective: needs own_loss = True in the settings class Mine",
    ),
    "a state that is not declared": (
        {"a.py": trainer("    def next_state(self, state, updates, clients): ...\n")},
        ["a.py"],
        "a.py: Trainer.next_state: needs keeps_state = True in the settings",
    ),
    "a built-in trainer's loss that is not declared": (
        {
            "a.py": PLUGIN.replace(
                TRAINER, "from fedstage.algorithm.local_trainers.fedlc import Trainer"
            )
        },
        ["a.py"],
        "a.py: Trainer.objective: needs own_loss = True in the settings class Mine",
    ),
    "a function of other arguments": (
        {"a.py": PLUGIN.replace("Trainer(settings)", "Trainer(settings, rate)")},
        ["a.py"],
        "a.py: Trainer(settings, rate): must take (settings)",
    ),
    "no function": (
        {"a.py": PLUGIN.replace(TRAINER, "Trainer = 1")},
        ["a.py"],
        "a.py: Trainer = 1: must be a function",
    ),
}


def test_each_fault_of_a_plugin_is_one_line_with_its_file(load, tmp_path):
    for number, (files, named, line) in enumerate(FAULTS.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        os.chdir(folder)
        for name, code in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code)
        with pytest.raises(FedstageError) as raised:
            load_plugins(named)
        assert line in str(raised.value)
        assert "\n" not in str(raised.value)


def test_all_that_is_built_in_takes_what_plugins_must_take():
    kinds = [kind for kind in choices() if kind.functions]
    assert len(kinds) > 50
    for kind in kinds:
        for module in kind.modules():
            assert not list(faults_of(kind, import_module(module))), module


def test_helpers_of_a_trainer_are_no_misspelt_hooks(load):
    calls = "    def kept(self, trained, state, client): return self.keep(trained)\n"
    helpers = "    def keep(self, trained): ...\n    def _sent_down(self): ...\n"
    load({"mine.py": trainer(calls + helpers)}, "mine.py")
    assert implementation(a_recipe().local).Trainer.__module__ == "fedstage_plugins.mine"
    own = "from fedstage.algorithm.local_trainers.fedavg import Trainer"
    load({"other.py": PLUGIN.replace("def Trainer(settings): ...", own)}, "other.py")


LIST = """
from fedstage.execution.cli import main
import sys
sys.exit(main(["list", "plugins"]))
"""


@pytest.mark.slow
def test_an_installed_package_has_plugins_by_its_entry_point(tmp_path):
    site, project = tmp_path / "site", tmp_path / "project"
    (site / "theirs").mkdir(parents=True)
    project.mkdir()
    (site / "theirs/__init__.py").write_text("")
    (site / "theirs/methods.py").write_text(PLUGIN)
    about = site / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    entry = about / "entry_points.txt"
    for module, line in (
        ("methods", "mine  "),
        ("nothing", "entry point their = theirs.nothing: "),
    ):
        entry.write_text(f"[fedstage.plugins]\ntheir = theirs.{module}\n")
        environment = os.environ | {"PYTHONPATH": str(site)}
        done = subprocess.run(
            [sys.executable, "-c", LIST],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert line in done.stdout + done.stderr
        assert (done.returncode == 0) == (module == "methods")
