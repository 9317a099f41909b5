"""The examples of extension points, to which the page on them leads, in one experiment."""

import re
import shutil
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from fedstage.execution.cli import main
from fedstage.plan.syntax import PACKAGE
from fedstage.settings.plugins import load_plugins

pytestmark = pytest.mark.workflow

DOCS = Path(__file__).parents[2] / "workflow/docs"
PAGE = (DOCS / "extending.md").read_text()
PARTS = yaml.safe_load((DOCS / "examples/parts.yaml").read_text())
BASE, METHODS = PARTS["base"], PARTS["methods"]


def add(folder):
    """Put the examples of the page into a project."""
    for examples in (DOCS / "examples", DOCS.parent / "project"):
        shutil.copytree(examples / "my_methods", folder / "my_methods", dirs_exist_ok=True)


def configure(project, methods, **more):
    experiment = {
        "title": "Added parts",
        "base": BASE,
        "methods": {name: METHODS[name] for name in methods},
        "grid": {"method": list(methods)},
        "results": ["table"],
        "scales": {"default": {}},
    }
    own = {"targets": ["added"], "plugins": ["my_methods/"]}
    config = own | {"experiments": {"added": experiment}} | more
    (project.path / "config.yaml").write_text(yaml.safe_dump(config))


@pytest.fixture
def extended(project):
    add(project.path)
    configure(project, METHODS)
    return project


def test_the_page_has_an_example_of_each_extension_point(extended, monkeypatch, capsys):
    """Each row of its table but three that are rarely another."""
    rows = re.findall(r"^\| [^|]+ \| `(\w+)\.(\w+)` \| [^|]+ \| `(\S+)` \|", PAGE, re.MULTILINE)
    rooms = set()
    for module, name, described in rows:
        kind = getattr(import_module(f"fedstage.settings.{module}"), name)
        place = PACKAGE / described
        folder = place.parent if place.suffix else place
        assert kind.room == ".".join(folder.relative_to(PACKAGE).parts)
        assert (place if place.suffix else place / "__init__.py").is_file()
        rooms.add(kind.room)
    monkeypatch.chdir(extended.path)
    try:
        assert main(["list", "plugins"]) == 0
    finally:
        load_plugins([])
    shown = {line.split()[1] for line in capsys.readouterr().out.splitlines()[1:]}
    rare = {
        "algorithm.one_shot.aggregator_training",
        "algorithm.global_trainers.generators",
        "models.encoders",
    }
    assert shown == rooms - rare
    assert {"compact", "fedcm", "clipped", "halving", "taught", "scored"} <= set(METHODS)
    assert {"highest", "most_right", "shuffled", "gaussian"} <= set(METHODS)


def test_what_the_page_says_can_be_done_literally(extended):
    run = extended.make()
    assert run.jobs["local_training"] > 0
    table = (extended.path / "results/tables/added/default.csv").read_text()
    assert {row.split(",")[0] for row in table.splitlines()[1:]} == set(METHODS)
    assert extended.make().jobs == {}
    # An edit of a part makes anew what chose it, and nothing else.
    edit(extended.path / "my_methods/fedcm.py")
    lines = {line for _, _, line in extended.plan().trained()}
    assert lines
    assert all("-fedcm-" in line for line in lines)


def edit(path):
    path.write_text(path.read_text() + "\n\nKNOWN = 1\n")


def test_new_parts_make_nothing_anew_that_does_not_use_them(project, tmp_path, monkeypatch):
    """Finished results stay when a data set, a model or any other part comes in."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "src"))
    copy = tmp_path / "src/fedstage"
    shutil.copytree(PACKAGE, copy)
    methods = ["feddf", "fedavg_median", "fedens"]
    project.configure(
        methods=methods, aggregator_fraction=0.1, execution={"granularity": "segment"}
    )
    assert project.make().jobs.total() > 10
    assert project.plan().jobs == {}
    add(project.path)
    config = yaml.safe_load((project.path / "config.yaml").read_text())
    (project.path / "config.yaml").write_text(yaml.safe_dump(config | {"plugins": ["my_methods"]}))
    assert project.plan().jobs == {}
    # What all models share is another matter.
    edit(copy / "models/loading.py")
    assert project.plan().jobs["initial_model"] == 1


def test_the_pages_trainer_with_a_state_is_refused_where_it_does_not_declare_it(extended):
    path = extended.path / "my_methods/fedcm.py"
    kept = "    keeps_state: ClassVar[bool] = True\n"
    assert kept in path.read_text()
    path.write_text(path.read_text().replace(kept, ""))
    configure(extended, ["fedcm"])
    run = extended.call()
    assert run.code != 0
    fault = "Trainer.next_state: needs keeps_state = True in the settings class"
    assert f"fedstage: my_methods/fedcm.py: {fault} FedCm" in run.output
