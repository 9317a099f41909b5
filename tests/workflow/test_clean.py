"""Results that no experiment needs any more: a real run whose experiments change."""

import shutil
from pathlib import Path

import pytest
import yaml

from fedstage.execution.cli import main

pytestmark = pytest.mark.workflow

METHODS = Path(__file__).parents[2] / "workflow/methods.yaml"


@pytest.fixture
def here(copy, monkeypatch):
    """A folder with the results of `tiny`, and without the shipped experiments."""
    shipped(copy)
    monkeypatch.chdir(copy.path)
    return copy


def shipped(project):
    """Give a folder the library of methods, and no experiments."""
    (project.path / "workflow/experiments").mkdir(parents=True)
    shutil.copy(METHODS, project.path / "workflow")


@pytest.fixture(scope="module")
def both(finished, new_project):
    """A finished run of `tiny`, and of `other`, with another seed."""
    project = new_project()
    shutil.copytree(finished.path, project.path, symlinks=True, dirs_exist_ok=True)
    shipped(project)
    path = project.path / "config.yaml"
    config = yaml.safe_load(path.read_text())
    tiny = config["experiments"]["tiny"]
    config["experiments"]["other"] = tiny | {"base": tiny["base"] | {"seed": 1}}
    path.write_text(yaml.safe_dump(config | {"targets": ["tiny", "other"]}))
    project.make()
    return project


@pytest.fixture
def changed(both, tmp_path, monkeypatch):
    """A copy of a folder with the results of `tiny` and `other`."""
    shutil.copytree(both.path, tmp_path / "copy", symlinks=True)
    monkeypatch.chdir(tmp_path / "copy")
    return type(both)(tmp_path / "copy")


def write(project, **experiments):
    path = project.path / "config.yaml"
    config = yaml.safe_load(path.read_text())
    known = {name: config["experiments"][name] for name in experiments}
    changed = {name: known[name] | changes for name, changes in experiments.items()}
    content = config | {"experiments": changed, "targets": list(experiments)}
    path.write_text(yaml.safe_dump(content))


def logs_of(project):
    logs = project.path / "results/logs"
    return {str(path.relative_to(logs)) for path in logs.rglob("*") if path.is_file()}


def cleaned(capsys, *options):
    assert main(["clean", *options]) == 0
    *rows, total = capsys.readouterr().out.splitlines()
    return {row.partition(":")[0] for row in rows}, total


def test_a_broken_experiment_without_results_is_left_out(tmp_path, monkeypatch, capsys):
    (tmp_path / "workflow/experiments").mkdir(parents=True)
    (tmp_path / "workflow/experiments/new.yaml").write_text("title: [broken\n")
    quickstart = yaml.safe_load((METHODS.parents[1] / "config.yaml").read_text())
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(quickstart))
    shutil.copy(METHODS, tmp_path / "workflow")
    monkeypatch.chdir(tmp_path)
    unknown = ["training/unknown", "raw/unknown.json", "descriptions/unknown-0.5.choice.json"]
    for name in unknown:
        (tmp_path / "results" / name).mkdir(parents=True)
    for name in unknown[1:]:
        (tmp_path / "results" / name).rmdir()
        (tmp_path / "results" / name).touch()
    assert main(["clean"]) == 0
    shown = capsys.readouterr()
    assert {f"results/{name}: 0 B" for name in unknown} <= {*shown.out.splitlines()}
    assert "a broken experiment is left out" in shown.err


def test_what_is_abandoned_goes_with_its_logs_and_nothing_else(changed, capsys):
    before, logs = changed.results(), logs_of(changed)
    rows, total = cleaned(capsys)
    assert rows == set()
    assert total == "0 folders and files of results, 0 B: --delete deletes them"
    write(changed, tiny={})
    listed, total = cleaned(capsys)
    assert changed.results() == before
    assert total.endswith(": --delete deletes them")
    assert {"results/by_method/other/default", "results/tables/other/default.md"} <= listed
    recipes = {path for path in listed if path.startswith("results/training/")}
    assert recipes
    assert all("-seed1-" in path for path in recipes)
    assert not any("/data/" in path or "/tiny/" in path for path in listed)  # both have the data

    deleted, _ = cleaned(capsys, "--delete")
    assert deleted == listed
    assert not any((changed.path / path).exists() for path in listed)
    after = changed.results()
    assert after == {path: content for path, content in before.items() if path in after}
    kept = {path for path in logs if "-seed1" not in path and "/other/" not in path}
    assert logs_of(changed) == kept
    assert "Nothing to be done" in changed.plan().output
    assert cleaned(capsys)[0] == set()


def test_targets_to_keep_are_named(changed, capsys):
    listed, _ = cleaned(capsys, "--keep", "other")
    assert "results/tables/tiny/default.md" in listed
    assert not any("-seed1-" in path or "/other/" in path for path in listed)


def test_results_of_a_broken_experiment_are_not_at_risk(here, capsys):
    write(here, tiny={"grid": {"method": ["nonsuch"]}})
    assert main(["clean", "--delete"]) == 1
    assert "nonsuch" in capsys.readouterr().err


def test_a_folder_in_which_a_run_works_is_left_alone(here, capsys):
    locks = here.path / ".snakemake/locks"
    locks.mkdir(exist_ok=True)
    (locks / "0.input.lock").touch()
    assert main(["clean"]) == 1
    assert "a run works in this folder" in capsys.readouterr().err
