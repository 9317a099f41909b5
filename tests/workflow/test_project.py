"""Projects: what `fedstage init` makes, from the wheel in an environment of its own."""

import os
import subprocess
import tomllib

import pytest

from fedstage.errors import FedstageError
from fedstage.execution.cli import main
from fedstage.execution.project import init, make_project, workflow_folder

from .conftest import REPOSITORY

pytestmark = pytest.mark.workflow


def call(folder, *command, **variables):
    done = subprocess.run(
        command, cwd=folder, env=variables or None, text=True, timeout=1200,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder of the programs of an environment in which only the wheel is installed."""
    folder = tmp_path_factory.mktemp("installed")
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["uv"]
    (folder / "constraints.txt").write_text("\n".join(settings["constraint-dependencies"]))
    call(REPOSITORY, "uv", "build", "--quiet", "--out-dir", str(folder))
    call(folder, "uv", "venv", "--quiet", "env")
    (wheel,) = folder.glob("*.whl")
    options = ["--quiet", "--python", "env/bin/python", "--constraints", "constraints.txt"]
    call(folder, "uv", "pip", "install", *options, str(wheel))
    return folder / "env/bin"


@pytest.mark.slow
def test_the_wheel_has_all_that_a_project_needs(installed, tmp_path):
    path = {"PATH": f"{installed}{os.pathsep}{os.environ['PATH']}", "HOME": os.environ["HOME"]}
    told = call(tmp_path, "fedstage", "init", "mine", **path)
    assert told == "cd mine && snakemake --cores all\n"
    folder = tmp_path / "mine"
    config = folder / "config.yaml"
    config.write_text(config.read_text().replace("20, 21, 22, 23, 24, 25", "20"))
    experiment = folder / "experiments/my_experiment.yaml"
    experiment.write_text(experiment.read_text().replace("20, 21", "20"))
    output = call(folder, "snakemake", "--cores", "2", "all", "my_experiment", **path)
    assert "jobs done" in output  # of the profile's live line
    assert "| FedDyn" in output or "| feddyn" in output
    table = (folder / "results/tables/quickstart/default.md").read_text()
    assert all(name in table for name in ("FedAvg", "FedDF", "FENS"))
    assert "Nothing to be done" in call(folder, "snakemake", "-n", "all", "my_experiment", **path)
    listed = call(folder, "fedstage", "list", "methods", **path)
    assert "scaffold" in listed
    assert "my_methods/feddyn.py" in call(folder, "fedstage", "list", "plugins", **path)


def test_a_project_keeps_what_is_there(tmp_path, capsys):
    (tmp_path / "profiles/default").mkdir(parents=True)
    (tmp_path / "profiles/default/config.yaml").write_text("cores: 1\n")
    make_project(tmp_path, "config.yaml")
    assert (tmp_path / "profiles/default/config.yaml").read_text() == "cores: 1\n"
    with pytest.raises(FedstageError, match="Snakefile: is there already"):
        init(tmp_path)
    assert not (tmp_path / "config.yaml").exists()


def test_commands_take_the_workflow_of_the_clone_they_are_called_in(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert workflow_folder() == REPOSITORY / "workflow"
    assert main(["list", "methods"]) == 0
    assert "scaffold" in capsys.readouterr().out
    (tmp_path / "workflow").mkdir()
    (tmp_path / "workflow/methods.yaml").write_text("only: {}\n")
    assert main(["list", "methods"]) == 0
    assert "scaffold" not in capsys.readouterr().out
