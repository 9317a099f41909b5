"""The stages on texts, from files as published: FedAvg for two rounds, and a distillation.

The models of Fed-ET's clients, tiny and with a representation layer.
"""

import importlib.util
import json
import os
from pathlib import Path

import pytest
from tests.shared.stages import (
    aggregation,
    dataset,
    distillation,
    evaluation,
    initial_model,
    local_training,
    logits,
    participation,
    partition,
    recipe,
)

from fedstage.storage.files import load_json
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import load_tensors

FILE = "training.1600000.processed.noemoticon.csv"
REAL = Path(os.environ.get("FEDSTAGE_DATA", "nowhere"), "ag_news", "test.csv")
CLIENTS, HEAD, VOCABULARY = 4, {"hidden": 8, "width": 8}, 60
MODELS = {
    "lstm": {"name": "lstm", "vocabulary": VOCABULARY, "embedding": 8, "hidden": 8, "head": HEAD},
    "bert": {
        "name": "bert", "dropout": 0.0, "vocabulary": VOCABULARY, "positions": 8, "width": 8,
        "hidden": 16, "head": HEAD,
    },
}  # fmt: skip
SETTINGS = {
    "data": {
        "name": "sent140", "min_samples": 9, "length": 8, "vocabulary_size": VOCABULARY,
        "test": 0.25,
    },
    "clients": CLIENTS,
    "partition": {"name": "natural"},
    "participants": CLIENTS,
    "client": {"steps": 40, "batch_size": 5, "learning_rate": 0.03, "optimiser": "adam"},
    "ensemble": {"name": "aggregated"},
    "global": {"name": "basic"},
    "server": {"steps": 2, "batch_size": 5, "learning_rate": 0.01},
    "numerics": {"device": "cpu"},
    "seed": 1,
}  # fmt: skip


def tweets():
    """Return ten tweets of each of seven users, whose polarity is a word."""
    words = {"0": "a sad day", "4": "a glad day, so glad"}
    for user in range(7):
        for number in range(10):
            polarity = "04"[(user + number) % 2]
            text = f"{words[polarity]} {number % 3}"
            yield f'"{polarity}","{number}","Mon Apr 06","NO_QUERY","user{user}","{text}"\n'


def prepare(at, settings):
    """Make everything up to the initial model."""
    parts = ("train", "test", "held_out", "test_own", "server_validation")
    dataset(
        settings=json.dumps(settings["data"]), info=at("info.json"),
        **{part: at(f"{part}.safetensors") for part in parts},
    )  # fmt: skip
    recipe(settings=json.dumps(settings), output=at("recipe.yaml"))
    chosen = {name: settings[name] for name in ("clients", "partition", "seed")}
    partition(
        settings=json.dumps(chosen | {"validation": 0.0}), train=at("train.safetensors"),
        output=at("clients.parquet"), histogram=at("histogram.parquet"),
    )  # fmt: skip
    participation(
        clients=CLIENTS, participants=CLIENTS, seed=1, first=1, last=2, output=at("plan.parquet")
    )
    model = json.dumps({"model": settings["model"], "seed": 1})
    initial_model(settings=model, group=0, info=at("info.json"), output=at("w0.safetensors"))


def federate(at, settings):
    """Train for two rounds of FedAvg."""
    prepare(at, settings)
    for round_ in (1, 2):
        start = at(f"w{round_ - 1}.safetensors")
        updates = [
            at(f"update_{round_}_{participant}.safetensors") for participant in range(CLIENTS)
        ]
        local_training(
            recipe=at("recipe.yaml"), round=round_, group=0, participants=list(range(CLIENTS)),
            start=start,
            data=at("train.safetensors"), info=at("info.json"), clients=at("clients.parquet"),
            participation=at("plan.parquet"), outputs=updates,
        )  # fmt: skip
        aggregation(
            recipe=at("recipe.yaml"), info=at("info.json"), start=start, updates=updates,
            output=at(f"w{round_}.safetensors"), participants=at(f"participants_{round_}.parquet"),
        )  # fmt: skip


def accuracy(at):
    evaluation(
        recipe=at("recipe.yaml"), evaluated="global_model", role="test", rounds=2, every=2,
        models=[at("w2.safetensors")],
        data=at("test.safetensors"), info=at("info.json"), clients=at("clients.parquet"),
        histogram=at("histogram.parquet"), participants=[at("participants_2.parquet")],
        output=at("metrics.parquet"),
    )  # fmt: skip
    (row,) = load_table(at("metrics.parquet")).to_pylist()
    return row["top1_accuracy"]


def losses(at):
    return [
        max(row["loss"] for row in load_table(at(f"participants_{round_}.parquet")).to_pylist())
        for round_ in (1, 2)
    ]


@pytest.fixture(params=MODELS)
def world(request, tmp_path, monkeypatch):
    """A folder with two rounds on tweets, and the settings of the recipe."""
    if request.param == "bert" and importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers, of the extra `text`, is not installed")
    folder = tmp_path / "raw" / "sent140"
    folder.mkdir(parents=True)
    (folder / FILE).write_text("".join(tweets()), encoding="latin-1")
    settings = SETTINGS | {"model": MODELS[request.param]}
    monkeypatch.setenv("FEDSTAGE_DATA", str(folder.parent))
    federate(tmp_path.joinpath, settings)
    return tmp_path, settings


def test_two_rounds_learn_the_polarity_of_tweets(world):
    folder, _ = world
    assert load_json(folder / "info.json")["train"] == 10 * CLIENTS
    first, second = losses(folder.joinpath)
    assert second < first
    assert accuracy(folder.joinpath) >= 90


def test_a_student_learns_from_tweets_that_are_set_aside(world):
    folder, _ = world
    at = folder.joinpath
    held_out, said = at("held_out.safetensors"), at("logits.safetensors")
    logits(
        recipe=at("recipe.yaml"), members="aggregated", models=[at("w2.safetensors")],
        data=held_out,
        info=at("info.json"), output=said,
    )  # fmt: skip
    assert load_tensors(said)[0]["logits"].shape == (1, 10, 2)
    distillation(
        recipe=at("recipe.yaml"), round=1, group=0, start=at("w1.safetensors"), logits=[said],
        public=held_out, info=at("info.json"), output=at("student.safetensors"),
    )  # fmt: skip
    start, student = (load_tensors(at(f"{name}.safetensors"))[0] for name in ("w1", "student"))
    assert student.keys() == start.keys()
    assert any(not student[name].equal(start[name]) for name in start)


@pytest.mark.skipif(not REAL.is_file(), reason="FEDSTAGE_DATA has no ag_news/test.csv")
def test_an_lstm_learns_from_real_articles(tmp_path, monkeypatch):
    folder = tmp_path / "raw" / "ag_news"
    folder.mkdir(parents=True)
    articles = REAL.read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "train.csv").write_text("".join(articles[:5000]), encoding="utf-8")
    (folder / "test.csv").write_text("".join(articles[5000:6000]), encoding="utf-8")
    settings = SETTINGS | {
        "data": {"name": "ag_news", "length": 32, "vocabulary_size": 3000, "held_out": 10},
        "partition": {"name": "iid"},
        "model": {
            "name": "lstm", "vocabulary": 3000, "embedding": 32, "hidden": 64,
            "head": {"hidden": 32, "width": 32},
        },
        "client": {
            "steps": 100, "batch_size": 32, "learning_rate": 0.003, "optimiser": "adam",
        },
    }  # fmt: skip
    monkeypatch.setenv("FEDSTAGE_DATA", str(folder.parent))
    federate(tmp_path.joinpath, settings)
    first, second = losses(tmp_path.joinpath)
    assert second < first
    assert accuracy(tmp_path.joinpath) > 35  # of four classes
