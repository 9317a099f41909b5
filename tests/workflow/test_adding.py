"""The page on extension points, followed literally: its blocks are put where they say, and run."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from fedstage.plan.syntax import PACKAGE

pytestmark = pytest.mark.workflow

PAGE = (Path(__file__).parents[2] / "workflow/docs/extending.md").read_text()
BLOCKS = re.findall(r"^```(python|yaml)\n# ([^\n]+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Entry:
    """A settings class: its file, the union that it enters, its imports and its code."""

    file: str
    union: str
    imports: str
    code: str

    @property
    def name(self):
        return re.search(r"^class (\w+)\(", self.code, re.MULTILINE)[1]


def modules():
    """The new modules of the page, by their files below the package."""
    places = ((re.fullmatch(r"src/fedstage/(\S+\.py)", told), code) for _, told, code in BLOCKS)
    return {place[1]: code for place, code in places if place}


def entries():
    """The settings classes of the page."""
    for _, told, code in BLOCKS:
        place = re.fullmatch(r"src/fedstage/(\S+\.py): above (\w+), and first in it", told)
        if place:
            start = re.search(r"^class ", code, re.MULTILINE).start()
            yield Entry(place[1], place[2], code[:start].strip(), code[start:])


def settings(what):
    """The YAML blocks of the page of one kind, merged."""
    merged = {}
    for language, told, text in BLOCKS:
        if language == "yaml" and told == what:
            merged |= yaml.safe_load(text)
    return merged


BASE, METHODS = settings("base"), settings("method")


def enter(package, entry):
    """Put a settings class above its union, and its name first into it."""
    path = package / "settings" / Path(entry.file).name
    text = path.read_text()
    union = re.search(rf"^{entry.union} = (?:ByName\[)?\s*", text, re.MULTILINE)
    text = f"{text[: union.start()]}{entry.code}\n\n{union[0]}{entry.name} | {text[union.end() :]}"
    if entry.imports:
        text = text.replace("\nfrom fedstage", f"\n{entry.imports}\nfrom fedstage", 1)
    path.write_text(text)


def add(package):
    """Add all parts of the page to a copy of the package."""
    for file, code in modules().items():
        assert not (package / file).exists()
        (package / file).write_text(code)
    for entry in entries():
        enter(package, entry)


def copy_package(folder):
    shutil.copytree(PACKAGE, folder / "fedstage", ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "fedstage"


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package with all parts of the page."""
    copy = copy_package(tmp_path_factory.mktemp("src"))
    add(copy)
    return copy


@pytest.fixture
def extended(project, package, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    experiment = {
        "title": "Added parts",
        "base": BASE,
        "methods": METHODS,
        "grid": {"method": list(METHODS)},
        "scales": {"default": {}},
    }
    config = {"targets": ["added"], "experiments": {"added": experiment}}
    (project.path / "config.yaml").write_text(yaml.safe_dump(config))
    return project


def test_the_page_has_an_example_of_each_extension_point():
    """Each row of its table but two that are rarely another."""
    rows = re.findall(r"^\| [^|]+ \| `(\S+)/NAME\.py`", PAGE, re.MULTILINE)
    shown = {str(Path(file).parent) for file in modules()}
    rare = {"algorithm/one_shot/aggregator_training", "algorithm/global_trainers/generators"}
    assert shown == set(rows) - rare
    assert all((PACKAGE / folder).is_dir() for folder in rows)
    assert len(modules()) == len(list(entries()))
    assert {"compact", "feddyn", "clipped", "halving", "taught", "scored"} <= set(METHODS)
    assert {"highest", "most_right", "shuffled", "gaussian"} <= set(METHODS)


def test_what_the_page_says_can_be_done_literally(extended, package):
    run = extended.make()
    assert run.jobs["local_training"] > 0
    table = (extended.path / "results/tables/added/default.csv").read_text()
    assert {row.split(",")[0] for row in table.splitlines()[1:]} == set(METHODS)
    assert extended.make().jobs == {}
    # An edit of a part makes anew what chose it, and nothing else.
    path = package / "algorithm/local_trainers/feddyn.py"
    text = path.read_text()
    path.write_text(text.replace("alpha=self.settings.alpha", "alpha=2 * self.settings.alpha"))
    lines = {line for _, _, line in extended.plan().trained()}
    path.write_text(text)
    assert lines
    assert all("-feddyn-" in line for line in lines)


def edit(path):
    path.write_text(path.read_text() + "\n\nKNOWN = 1\n")


def test_new_parts_make_nothing_anew_that_does_not_use_them(project, tmp_path, monkeypatch):
    """Finished results stay when a data set, a model or any other part comes in."""
    copy = copy_package(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    methods = ["feddf", "fedavg_median", "fedens"]
    project.configure(
        methods=methods, aggregator_fraction=0.1, execution={"granularity": "segment"}
    )
    assert project.make().jobs.total() > 10
    assert project.plan().jobs == {}
    add(copy)
    assert project.plan().jobs == {}
    # Nor does a case of a model in the estimate of disk space.
    for file in ("models/size.py", "experiments/disk_space.py"):
        edit(copy / file)
    assert project.plan().jobs == {}
    # What all models share is another matter.
    edit(copy / "models/build.py")
    assert project.plan().jobs["initial_model"] == 1


def call(package, code):
    environment = os.environ | {"PYTHONPATH": str(package.parent)}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )


LOAD = """
from fedstage.algorithm.local_trainers import local_trainer
from fedstage.settings.local_training import FedDyn
local_trainer(FedDyn(name="feddyn"))
"""


def test_the_pages_trainer_with_a_state_is_refused_where_it_does_not_declare_it(tmp_path, package):
    assert call(package, LOAD).returncode == 0
    forgetful = tmp_path / "src" / "fedstage"
    shutil.copytree(package, forgetful, ignore=shutil.ignore_patterns("__pycache__"))
    path = forgetful / "settings/local_training.py"
    start = path.read_text().index("class FedDyn")
    kept = "    keeps_state: ClassVar[bool] = True\n"
    path.write_text(path.read_text()[:start] + path.read_text()[start:].replace(kept, "", 1))
    refused = call(forgetful, LOAD).stderr.splitlines()[-1]
    assert "local = feddyn: keeps_state = False, but its trainer has next_state" in refused
    assert "set keeps_state = True in the settings class FedDyn" in refused
