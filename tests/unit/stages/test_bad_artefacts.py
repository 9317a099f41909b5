"""Stages that meet a damaged file, or settings that their data cannot meet, end with one line."""

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch
from tests.shared.settings import federated
from tests.shared.stages import make_by_command, recipe

from fedstage.execution.cli import main
from fedstage.plan.data_files import clients_table, data_file, participation_table
from fedstage.plan.graph import listed, recipe_file
from fedstage.plan.training import aggregation, global_model, local_training
from fedstage.protocol.digests import canonical
from fedstage.settings.recipes import Recipe
from fedstage.storage.files import load_json, save_json
from fedstage.storage.tensors import save_tensors

#: Words of the libraries underneath, which tell a person nothing.
JARGON = ("using discriminator", "instance of", "extract", "after validation", "<class")
SAMPLES = 60  # for training, of the 1797 of digits
RECIPE = Recipe.model_validate(
    federated(
        data={"digits": {"test": 1797 - SAMPLES - 20, "held_out": 20}},
        model="logistic_regression",
        numerics={"device": "cpu"},
    )
)
JOBS = {
    job.stage.name: job
    for job in (
        data_file(RECIPE.data, "train").job,
        clients_table(RECIPE).job,
        participation_table(RECIPE, 1).job,
        global_model(RECIPE, 0, 0).job,
        local_training.job(RECIPE, 1, 0, 0),
        aggregation.job(RECIPE, 1, 0),
    )
}


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A folder with all files of a round."""
    folder = tmp_path_factory.mktemp("good")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        make_by_command(aggregation(RECIPE, 1, 0))
    return folder


def truncate(path):
    path.write_bytes(path.read_bytes()[:-3])


def alter_tensors(path):
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)


def alter_table(path):
    """Flip a bit of the first column's values."""
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    starts = [offset for offset in (chunk.dictionary_page_offset, chunk.data_page_offset) if offset]
    raw = bytearray(path.read_bytes())
    raw[min(starts) + chunk.total_compressed_size - 1] ^= 1
    path.write_bytes(raw)


def delete(path):
    path.unlink()


def write(content):
    return lambda path: path.write_text(content)


def alter_recipe(path):
    text = path.read_text()
    assert "clients: 4" in text
    path.write_text(text.replace("clients: 4", "clients: 5"))


def write_schema_99(path):
    save_json(path, {"schema": 99, "settings": {}})  # JSON is YAML, too


def relabel(path):
    save_tensors(path, {"images": torch.zeros(SAMPLES, 1, 8, 8, dtype=torch.uint8)})


def refill(path):
    save_tensors(path, {"weight": torch.zeros(3)})


@dataclass(frozen=True)
class Damage:
    """A stage that meets a damaged file, or settings that its data cannot meet."""

    stage: str
    told: tuple[str, ...]
    file: str
    how: Any = None
    place: dict[str, int] = field(default_factory=dict)


def damaged(stage, option, how, *told):
    file = listed(JOBS[stage].inputs[option])[0]
    return Damage(stage, (file, *told), file, how)


def asked(stage, changes, *told):
    """Another recipe, of which the message tells more than its file."""
    settings = json.dumps(canonical(JOBS[stage].config) | changes)
    file = recipe_file(JOBS[stage].folder)
    return Damage(stage, told, file, lambda path: recipe(settings=settings, output=path))


def divided(*told, **changes):
    return asked("partition", changes, *told)


def dirichlet(**settings):
    return {"partition": {"dirichlet": {"alpha": 0.1, **settings}}}


DAMAGED = "truncated or altered"
WEIGHTS = {"loss": {"focal": {"class_weights": [1.0, 2.0]}}}
BAD_ARTEFACTS = [
    damaged("partition", "train", truncate, DAMAGED),
    damaged("local_training", "data", alter_tensors, DAMAGED),
    damaged("partition", "train", relabel, "labels"),
    damaged("local_training", "clients", truncate, DAMAGED),
    damaged("local_training", "participation", alter_table, DAMAGED),
    damaged("local_training", "clients", delete, "o such file"),
    damaged("local_training", "start", delete, "o such file"),
    damaged("local_training", "start", refill, "does not fit"),
    damaged("aggregation", "updates", alter_tensors, DAMAGED),
    damaged("initial_model", "info", truncate, DAMAGED, "not JSON"),
    damaged("initial_model", "info", write("[1]"), "must be a JSON object"),
    damaged("initial_model", "info", delete, "o such file"),
    damaged("local_training", "recipe", delete, "o such file"),
    damaged("local_training", "recipe", write("{"), "not valid YAML"),
    damaged("aggregation", "recipe", alter_recipe, "digest", "altered"),
    damaged("aggregation", "recipe", write_schema_99, "schema = 99", "reads"),
    damaged("aggregation", "recipe", write("{schema: 1, settings: {}}"), "schema = 1"),
    asked("aggregation", {"clients": 0}, "recipe.yaml: clients = 0"),
    Damage("participation", ("last = 0", "first = 1"), "config.yaml", place={"last": 0}),
    divided("clients = 61", "60 training samples", clients=61),
    divided("partition.min_samples = 16", "at most 15", **dirichlet(min_samples=16)),
    divided(
        "partition.max_draws = 3", "min_samples = 15", **dirichlet(min_samples=15, max_draws=3)
    ),
    divided("partition = natural", "client_column", partition="natural"),
    divided(
        "partition.classes_per_client = 3", "60", "90",
        partition={"shards": {"classes_per_client": 3}}, clients=30,
    ),
    divided("partition.classes_per_client = 16", partition={"shards": {"classes_per_client": 16}}),
    asked("participation", {"participants": 5}, "participants = 5", "clients = 4"),
    asked(
        "initial_model", {"model": {"logistic_regression": {"outputs": 1}}},
        "logistic_regression: outputs = 1: only for 2 classes", "has 10",
    ),
    asked(
        "local_training", {"client": canonical(RECIPE.client) | WEIGHTS},
        "client.loss = focal: 2 class_weights", "each class", "has 10",
    ),
    asked("dataset", {"data": {"name": "svhn"}}, "svhn", "FEDSTAGE_DATA"),
    asked("dataset", {"data": {"name": "digits", "test": 1797}}, "test = 1797", "1796"),
]  # fmt: skip


def there():
    return {path for path in Path("results").rglob("*.*") if "logs" not in path.parts}


def test_bad_artefact_ends_a_stage_with_1_and_one_line(good, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("FEDSTAGE_DATA", raising=False)
    for number, case in enumerate(BAD_ARTEFACTS):
        shutil.copytree(good, tmp_path / str(number))
        monkeypatch.chdir(tmp_path / str(number))
        job = JOBS[case.stage]
        for file in job.files.values():
            Path(file).unlink()
        if case.how is not None:
            case.how(Path(case.file))
        before = there()
        words = [f"{name}={value}" for name, value in {**job.at, **case.place}.items()]
        assert main(["run", case.stage, recipe_file(job.folder), *words]) == 1, case
        shown = capsys.readouterr()
        assert shown.out == ""
        (line,) = shown.err.splitlines()
        assert line.startswith(f"fedstage {case.stage}: ")
        assert [part for part in case.told if part not in line] == [], line
        assert [word for word in JARGON if word in line] == [], line
        told = [load_json(path)["error"] for path in Path("results/logs").rglob("*.json")]
        assert ([line] in told) == ("recipe.yaml: " not in line), line
        assert there() == before


@pytest.mark.parametrize("missing", ["missing", "info.json"], ids=["folder", "file"])
def test_missing_data_folder_is_named(tmp_path, capsys, monkeypatch, missing):
    monkeypatch.chdir(tmp_path)
    Path("info.json").touch()
    monkeypatch.setenv("FEDSTAGE_DATA", str(tmp_path / missing))
    recipe(settings='{"data": {"name": "svhn"}}', output="recipe.yaml")
    assert main(["run", "dataset", "recipe.yaml"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(tmp_path / missing) in line
    assert "data_folder" in line


def test_missing_folder_of_images_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FEDSTAGE_DATA", str(tmp_path))
    recipe(settings='{"data": {"parquet": {"folder": "flowers"}}}', output="recipe.yaml")
    assert main(["run", "dataset", "recipe.yaml"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(tmp_path / "flowers") in line
