"""A natural client is forgotten, and what still contains it deleted: a real run."""

import gzip
import json
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from fedstage.execution import forget as command
from fedstage.execution.cli import main
from fedstage.storage.provenance import content_digest
from fedstage.storage.strays import machine

pytestmark = pytest.mark.workflow

WORKFLOW = Path(__file__).parents[2] / "workflow"
ONE_SHOT = {"training": "one_shot", "rounds": 1, "aggregator": "voting"}


def write_patients(folder):
    folder.mkdir(parents=True)
    generator = np.random.default_rng(0)
    age = generator.integers(20, 90, 200)
    centre = generator.choice(["Basel", "Bern", "Chur"], 200)
    table = {"age": age, "centre": centre, "outcome": np.where(age > 55, "ill", "well")}
    pd.DataFrame(table).to_csv(folder / "train.csv", index=False)


@pytest.fixture(scope="module")
def forgotten(new_project, alone):
    """A run in which an aggregator forgets the second centre, beside others that have it."""
    project = replace(new_project(), snakefile=alone)
    write_patients(project.path / "data/patients")
    table = {"folder": "patients", "label": "outcome", "client_column": "centre"}
    base = {
        "data": {"table": table | {"test_fraction": 0.2, "held_out": 20}},
        "partition": "natural",
        "clients": 3,
        "aggregator_fraction": 0.2,
        "participants": 2,
        "model": "logistic_regression",
        "rounds": 1,
        "client": {"epochs": 1, "batch_size": 16, "learning_rate": 0.05},
        "numerics": {"device": "cpu"},
        "seed": 0,
    }
    methods = {
        "fens": ONE_SHOT,
        "without_1": ONE_SHOT | {"forget": [1]},
        "fedavg": {"local": "fedavg"},
    }
    patients = {"title": "P", "base": base, "methods": methods, "grid": {"method": list(methods)}}
    digits = {"data": {"digits": {"test": 50}}, "partition": {"dirichlet": {"alpha": 1.0}}}
    other = {"title": "O", "base": base | digits, "methods": {"fedavg": {"local": "fedavg"}}}
    config = {
        "targets": ["patients", "later", "other"],
        "execution": {"granularity": "segment"},
        "experiments": {
            "patients": patients | {"results": ["table"], "scales": {"default": None}},
            "later": patients
            | {"grid": {"method": ["fens"], "seed": [1]}, "scales": {"default": None}},
            "other": other | {"results": ["table"], "scales": {"default": None}},
        },
    }
    (project.path / "config.yaml").write_text(yaml.safe_dump(config))
    project.make(FEDSTAGE_DATA=str(project.path / "data"))
    return project


@pytest.fixture
def made(forgotten, tmp_path, monkeypatch):
    """A copy of the run, in which commands are given."""
    shutil.copytree(forgotten.path, tmp_path / "copy", symlinks=True)
    monkeypatch.chdir(tmp_path / "copy")
    return replace(forgotten, path=tmp_path / "copy")


def digests(project):
    paths = (path for path in (project.path / "results").rglob("*") if path.is_file())
    return {str(path.relative_to(project.path)): content_digest(path) for path in paths}


def report_of(project):
    path = project.path / "results/forgetting/patients/default.deleted.json"
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def forget(alone):
    """The command, of which a test gives the options."""
    workflow = str(alone.with_name("workflow"))
    return lambda *options: main(["forget", "patients", "--workflow", workflow, *options])


def test_nothing_of_the_client_is_left_and_all_else_stays(made, forget, capsys):
    before = digests(made)
    assert forget() == 0
    listed = capsys.readouterr().out
    assert digests(made) == before
    assert forget("--delete") == 0
    after = digests(made)
    report = report_of(made)
    assert report["clients"] == [1]
    assert report["left"] == {}
    removed = {one["file"]: one["digest"] for one in report["removed"]}
    assert all(f"{file}: " in listed for file in removed)
    assert not removed.keys() & after.keys()
    # In both seeds: its model, not those of the others; no rounds with it, no table of them.
    models = [path for path in before if "/local_models/" in path and path.endswith("rs")]
    assert {path for path in models if path.endswith("/client_1.safetensors")} <= removed.keys()
    assert sum(path.endswith("/client_0.safetensors") for path in after) == 2
    assert not any(path.startswith("results/training/table") for path in after)
    assert any(path.startswith("results/training/digits") for path in after)
    assert "results/tables/other/default.csv" in after
    assert not {"results/tables/patients/default.csv", "results/tables/later/default.csv"} & {
        *after
    }
    # Of three aggregators only the one that has forgotten is left, without its scores.
    kept = {path.rpartition("/")[0] for path in after if path.startswith("results/aggregators/")}
    assert len(kept) == 1
    records = made.path.glob("results/logs/**/*.record.json")
    made_now = {file for path in records for file in outputs(json.loads(path.read_text()))}
    assert not removed.keys() & made_now


def outputs(record):
    return [file for files in record["outputs"].values() for file in files]


def test_copies_are_found_by_their_content_whatever_they_are_called(made, forget, capsys):
    (model,) = made.path.glob("results/local_models/table*seed0*/client_1.safetensors")
    table = made.path / "results/tables/patients/default.csv"
    text, results = model.read_bytes(), made.path / "results"
    copies = {
        "backup.safetensors": text,
        "tables/model.bak": text,
        "model.gz": gzip.compress(text),
        "logs/tables/default.csv.gz": gzip.compress(table.read_bytes()),
        f".{model.name}.elsewhere.1.tmp": text,
        "cut.tmp": text[:-1],
    }
    for name, content in copies.items():
        (results / name).write_bytes(content)
    for _ in range(2):  # also when all that was deleted is known from the report alone
        assert forget("--delete") == 1
        told = capsys.readouterr().err
        for name in copies:
            assert f"results/{name}: left, a copy of a deleted file" in told
    for name in copies:
        (results / name).unlink()
    with zipfile.ZipFile(results / "all.zip", "w") as archive:
        archive.writestr("model", text)
    assert forget("--delete") == 0
    *closed, told = capsys.readouterr().out.splitlines()
    assert closed == ["results/all.zip: an archive, or damaged: not looked into"]
    assert "archives, files outside results, and the raw data may remain" in told


def test_what_killed_and_failed_jobs_have_left_is_deleted(made, forget, capsys):
    (model,) = made.path.glob("results/local_models/table*seed0*/client_1.safetensors")
    stray = model.with_name(f".{model.name}.{machine()}.{2**30}.tmp")
    stray.write_bytes(b"half of it")
    writing = model.with_name(f".{model.name}.elsewhere.7.tmp")
    logs, recipe = made.path / "results/logs", model.parent.name
    (trained,) = made.path.glob("results/training/table*")
    failed = [
        logs / f"quantised_model/{recipe}/client_1.log",
        logs / f"segment/{trained.name}/segment_0002_0002_groups_0.log",
        logs / f"recipe/training/{trained.name}.log",
    ]
    others = [
        logs / f"quantised_model/{recipe}/client_0.log",
        logs / "description/patients/default.runs.log",
    ]
    for log in (*failed, *others):
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("fedstage: failed")
    failed[2].with_suffix(".record.json").unlink()
    foreign = made.path / "results/by_method/patients/default/mine"
    foreign.symlink_to("/nowhere")
    assert forget("--delete") == 0
    links = [path for path in (made.path / "results").rglob("*") if path.is_symlink()]
    assert [path for path in links if not path.exists()] == [foreign]
    assert foreign in links
    assert not any(path.exists() for path in (stray, *failed))
    assert all(path.exists() for path in others)
    removed = {row["file"]: row["contains"] for row in report_of(made)["removed"]}
    assert removed[str(stray.relative_to(made.path))] == "of a killed job"
    writing.write_bytes(b"half of it")
    assert forget("--delete") == 1
    assert "left, a process is writing a deleted file" in capsys.readouterr().err


def test_recipes_that_are_not_configured_any_more_are_deleted_too(made, forget):
    path = made.path / "config.yaml"
    config = yaml.safe_load(path.read_text())
    del config["experiments"]["later"]
    path.write_text(yaml.safe_dump(config | {"targets": ["patients", "other"]}))
    assert forget("--delete") == 0
    left = made.files("results/**/*seed1*/client_1*")
    assert left == []
    assert not (made.path / "results/tables/later/default.csv").exists()


def test_a_deletion_that_was_stopped_goes_on(made, forget, monkeypatch, capsys):
    def stopped(*arguments):
        delete(*arguments)
        raise KeyboardInterrupt

    delete = command.delete_files
    for path in made.path.glob("results/data/table*/*"):
        path.unlink()
    (model,) = made.path.glob("results/local_models/table*seed0*/client_1.safetensors")
    copy = made.path / "results/copy.bak"
    shutil.copy(model, copy)
    monkeypatch.setattr(command, "delete_files", stopped)
    with pytest.raises(KeyboardInterrupt):
        forget("--delete")
    monkeypatch.setattr(command, "delete_files", delete)
    assert any(row["file"].endswith("/train.safetensors") for row in report_of(made)["removed"])
    assert forget("--delete") == 1
    assert "copy.bak: left, a copy" in capsys.readouterr().err
    copy.unlink()
    assert forget("--delete") == 0  # nothing is there any more
    assert report_of(made)["left"] == {}


@pytest.mark.parametrize(
    ("target", "told"),
    [("other", "no run forgets a client"), ("fedavg", "no such experiment and scale")],
)
def test_what_forgets_nobody_is_told(made, capsys, target, told):
    assert main(["forget", target, "--workflow", str(WORKFLOW)]) == 1
    assert capsys.readouterr().err == f"fedstage forget: {target}: {told}\n"
