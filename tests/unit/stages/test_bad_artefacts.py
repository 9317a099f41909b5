"""Stages that meet a damaged file, or settings that their data cannot meet, end with one line."""

import json
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch

from fedstage.execution.cli import main
from fedstage.storage.files import save_json
from fedstage.storage.tensors import save_tensors

#: Words of the libraries underneath, which tell a person nothing.
JARGON = ("using discriminator", "instance of", "extract", "after validation", "<class")
SETTINGS = {
    "data": {"name": "digits"},
    "clients": 4,
    "partition": {"name": "iid"},
    "participants": 2,
    "model": {"name": "logistic_regression"},
    "client": {"epochs": 1, "batch_size": 8, "learning_rate": 0.1},
    "numerics": {"device": "cpu"},
    "seed": 0,
}
PARTITION = {"clients": 4, "partition": {"name": "iid"}, "validation": 0.0, "seed": 0}
INITIAL = {"model": SETTINGS["model"], "seed": 0}
PLAN = {"clients": 4, "participants": 2, "participation": "uniform", "seed": 0}
INFO = {"classes": 10, "shape": [1, 4, 4], "mean": [0.5], "std": [0.25]}
SAMPLES = 60

COMMANDS = {
    "partition": "--settings {partition} --train train.safetensors --output new"
    " --histogram new_histogram",
    "participation": "--settings {plan} --first 1 --last 100 --output new",
    "initial_model": "--settings {initial} --group 0 --info info.json --output new",
    "local_training": "--recipe recipe.yaml --round 1 --group 0 --participant 0"
    " --data train.safetensors --info info.json --clients clients.parquet"
    " --participation participation.parquet"
    " --start start.safetensors --state --output new",
    "aggregation": "--recipe recipe.yaml --info info.json --start start.safetensors"
    " --updates participant_0.safetensors participant_1.safetensors --state --output new"
    " --participants new_participants",
    "dataset": "--settings {digits} --train new --test new_test --held-out new_held_out"
    " --info new_info",
}


def arguments_of(stage, changes):
    """Return a stage's arguments; `changes` gives options another value."""
    texts = {"partition": PARTITION, "initial": INITIAL, "digits": SETTINGS["data"]}
    texts["plan"] = PLAN
    quoted = {name: shlex.quote(json.dumps(text)) for name, text in texts.items()}
    arguments = shlex.split(COMMANDS[stage].format(**quoted))
    for option, value in changes.items():
        arguments[arguments.index(option) + 1] = value
    return [stage, *arguments]


def run(stage, **changes):
    assert main(arguments_of(stage, {f"--{name}": value for name, value in changes.items()})) == 0


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A folder with all files that the commands above read."""
    folder = tmp_path_factory.mktemp("good")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        generator = torch.Generator().manual_seed(0)
        images = torch.randint(256, (SAMPLES, 1, 4, 4), generator=generator).to(torch.uint8)
        labels = torch.arange(SAMPLES) % 10
        save_tensors("train.safetensors", {"images": images, "labels": labels})
        save_json("info.json", INFO)
        assert main(["recipe", "--settings", json.dumps(SETTINGS), "--output", "recipe.yaml"]) == 0
        run("partition", output="clients.parquet")
        run("participation", output="participation.parquet")
        run("initial_model", output="start.safetensors")
        for participant in "01":
            run(
                "local_training",
                participant=participant,
                output=f"participant_{participant}.safetensors",
            )
        Path("new_histogram").unlink()
    return folder


@pytest.fixture
def folder(good, tmp_path, monkeypatch):
    """A copy of the good files to damage, as the working directory."""
    for path in good.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FEDSTAGE_DATA", raising=False)
    return tmp_path


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


def write_wrong_recipe(path):
    settings = json.dumps(SETTINGS | {"clients": 0})
    assert main(["recipe", "--settings", settings, "--output", str(path)]) == 0


def weigh_two_classes(path):
    client = SETTINGS["client"] | {"loss": {"focal": {"class_weights": [1.0, 2.0]}}}
    settings = json.dumps(SETTINGS | {"client": client})
    assert main(["recipe", "--settings", settings, "--output", str(path)]) == 0


def relabel(path):
    save_tensors(path, {"images": torch.zeros(SAMPLES, 1, 4, 4, dtype=torch.uint8)})


def refill(path):
    save_tensors(path, {"weight": torch.zeros(3)})


@dataclass(frozen=True)
class Damage:
    """A stage that meets a damaged file, or settings that its data cannot meet."""

    stage: str
    told: tuple[str, ...]
    file: str | None = None
    how: Any = None
    options: dict[str, str] = field(default_factory=dict)


def damaged(stage, file, how, *told):
    return Damage(stage, (file, *told), file, how)


def asked(stage, option, value, *told):
    text = value if isinstance(value, str) else json.dumps(value)
    return Damage(stage, told, options={option: text})


def divided(*told, **changes):
    return asked("partition", "--settings", PARTITION | changes, *told)


def dirichlet(**settings):
    return {"partition": {"dirichlet": {"alpha": 0.1, **settings}}}


DAMAGED = "truncated or altered"
BAD_ARTEFACTS = [
    damaged("partition", "train.safetensors", truncate, DAMAGED),
    damaged("local_training", "train.safetensors", alter_tensors, DAMAGED),
    damaged("partition", "train.safetensors", relabel, "labels"),
    damaged("local_training", "clients.parquet", truncate, DAMAGED),
    damaged("local_training", "participation.parquet", alter_table, DAMAGED),
    damaged("local_training", "clients.parquet", delete, "o such file"),
    damaged("local_training", "start.safetensors", delete, "o such file"),
    damaged("local_training", "start.safetensors", refill, "does not fit"),
    damaged("aggregation", "participant_0.safetensors", alter_tensors, DAMAGED),
    damaged("initial_model", "info.json", truncate, DAMAGED, "not JSON"),
    damaged("initial_model", "info.json", write("[1]"), "must be a JSON object"),
    damaged("initial_model", "info.json", delete, "o such file"),
    damaged("local_training", "recipe.yaml", delete, "o such file"),
    damaged("local_training", "recipe.yaml", write("{"), "not valid YAML"),
    damaged("aggregation", "recipe.yaml", alter_recipe, "digest", "altered"),
    damaged("aggregation", "recipe.yaml", write_schema_99, "schema = 99", "reads"),
    damaged("aggregation", "recipe.yaml", write("{schema: 1, settings: {}}"), "schema = 1"),
    damaged("aggregation", "recipe.yaml", write_wrong_recipe, "clients = 0"),
    asked("local_training", "--participant", "2", "participation", "participant 2"),
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
    divided("--settings", "clients = 0", clients=0),
    asked("partition", "--settings", "{", "--settings", "JSON"),
    asked(
        "participation", "--settings", PLAN | {"participants": 5}, "participants = 5", "clients = 4"
    ),
    asked("participation", "--last", "0", "last = 0", "first = 1"),
    asked(
        "initial_model", "--settings",
        {"model": {"logistic_regression": {"outputs": 1}}, "seed": 0},
        "logistic_regression: outputs = 1: only for 2 classes", "has 10",
    ),
    Damage(
        "local_training",
        ("client.loss = focal: 2 class_weights", "each class", "has 10"),
        "recipe.yaml",
        weigh_two_classes,
    ),
    asked("dataset", "--settings", {"name": "svhn"}, "svhn", "FEDSTAGE_DATA"),
    asked("dataset", "--settings", {"name": "digits", "test": 1797}, "test = 1797", "1796"),
]  # fmt: skip


def test_bad_artefact_ends_a_stage_with_1_and_one_line(good, folder, capsys):
    for case in BAD_ARTEFACTS:
        if case.file is not None:
            case.how(folder / case.file)
        assert main([*arguments_of(case.stage, case.options), "--log", "logs/a.log"]) == 1, case
        shown = capsys.readouterr()
        assert shown.out == ""
        (line,) = shown.err.splitlines()
        assert line.startswith(f"fedstage {case.stage}: ")
        assert [part for part in case.told if part not in line] == [], line
        assert [word for word in JARGON if word in line] == [], line
        assert Path("logs/a.log").read_text() == shown.err
        assert not list(folder.glob("*new*"))
        if case.file is not None:
            (folder / case.file).write_bytes((good / case.file).read_bytes())


@pytest.mark.parametrize("missing", ["missing", "info.json"], ids=["folder", "file"])
def test_missing_data_folder_is_named(folder, capsys, monkeypatch, missing):
    monkeypatch.setenv("FEDSTAGE_DATA", str(folder / missing))
    assert main(arguments_of("dataset", {"--settings": '{"name": "svhn"}'})) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(folder / missing) in line
    assert "data_folder" in line


def test_missing_folder_of_images_is_named(folder, capsys, monkeypatch):
    monkeypatch.setenv("FEDSTAGE_DATA", str(folder))
    settings = {"name": "parquet", "folder": "flowers"}
    assert main(arguments_of("dataset", {"--settings": json.dumps(settings)})) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(folder / "flowers") in line


def test_commands_of_these_cases_work_without_the_damage(folder):
    for stage in COMMANDS:
        assert main(arguments_of(stage, {})) == 0
        (folder / "new").unlink()
