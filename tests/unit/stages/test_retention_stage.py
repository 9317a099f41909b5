"""The stage `retention` against plain loops over samples, on models written by hand."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from tests.shared.settings import federated
from tests.shared.stages import dataset, initial_model, partition, retention
from tests.shared.stages import recipe as write_recipe

from fedstage.algorithm.measures.forgetting import RETENTION_SCHEMA
from fedstage.settings.recipes import Recipe
from fedstage.stages.aggregation import PARTICIPANTS_SCHEMA
from fedstage.storage.tables import load_table, save_rows
from fedstage.storage.tensors import load_tensors

CLIENTS = 5
DATA = {"name": "digits", "test": 60, "held_out": 30}
SETTINGS = federated(
    data=DATA,
    clients=CLIENTS,
    validation=0.2,
    model={"name": "logistic_regression"},
    numerics={"device": "cpu"},
)
#: The clients of each round, and their distances.
ROUNDS = {1: {0: 0.5, 1: 1.5}, 2: {2: 0.25}, 3: {}, 4: {2: None, 4: 3.0}, 5: {1: None}}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    names = ("train", "test", "held_out", "server_validation")
    files = {name: folder / f"{name}.safetensors" for name in names}
    files |= {"info": folder / "info.json", "recipe": folder / "recipe.yaml"}
    dataset(settings=json.dumps(DATA), **{k: v for k, v in files.items() if k != "recipe"})
    files |= {name: folder / f"{name}.parquet" for name in ("clients", "histogram")}
    chosen = {name: SETTINGS[name] for name in ("clients", "partition", "validation", "seed")}
    tables = {"output": files["clients"], "histogram": files["histogram"]}
    partition(settings=json.dumps(chosen), train=files["train"], **tables)
    write_recipe(settings=json.dumps(SETTINGS), output=files["recipe"])
    Recipe.model_validate(SETTINGS)
    return SimpleNamespace(folder=folder, **files)


def model_files(world, folder, seeds):
    """Write a model for each seed: random weights of a linear model."""
    paths = []
    for round_, seed in enumerate(seeds):
        path = folder / f"model_{round_}.safetensors"
        settings = json.dumps({"model": SETTINGS["model"], "seed": seed})
        initial_model(settings=settings, group=0, info=world.info, output=path)
        paths.append(path)
    return paths


def participants_files(folder, rounds, groups=1):
    """Write the participants of all groups, client after client in one group and the next."""
    paths = []
    for round_, clients in rounds.items():
        for group in range(groups):
            row = dict.fromkeys(PARTICIPANTS_SCHEMA.names, 0) | {"round": round_, "group": group}
            rows = [
                row | {"client": client, "distance": distance, "dropped": distance is None}
                for place, (client, distance) in enumerate(clients.items())
                if place % groups == group
            ]
            path = folder / f"participants_{round_}_{group}.parquet"
            save_rows(path, rows, PARTICIPANTS_SCHEMA)
            paths.append(path)
    return paths


def measure(world, folder, seeds, rounds=ROUNDS, groups=1):
    output, right = folder / "measures.parquet", folder / "measures.safetensors"
    retention(
        recipe=world.recipe, models=(models := model_files(world, folder, seeds)), data=world.train,
        test=world.test, info=world.info, clients=world.clients,
        participants=participants_files(folder, rounds, groups), output=output, right=right,
    )  # fmt: skip
    table = load_table(output)
    assert table.schema.remove_metadata() == RETENTION_SCHEMA
    return table.to_pylist(), load_tensors(right)[0], models


def right_samples(world, path, part):
    """The numbers of the samples of a file that a linear model is right about, one by one."""
    weights = list(load_tensors(path)[0].values())
    (matrix,) = (one for one in weights if one.dim() == 2)
    (bias,) = (one for one in weights if one.dim() == 1)
    info = json.loads(Path(world.info).read_text())
    tensors = load_tensors(part)[0]
    right = set()
    for number, (image, label) in enumerate(zip(tensors["images"], tensors["labels"], strict=True)):
        pixels = image.float() / 255
        normal = (pixels - torch.tensor(info["mean"])[:, None, None]) / (
            torch.tensor(info["std"])[:, None, None]
        )
        if int((matrix @ normal.flatten() + bias).argmax()) == int(label):
            right.add(number)
    return right


def samples_of(world, clients):
    rows = load_table(world.clients).to_pylist()
    return {row["sample"] for row in rows if row["client"] in clients and row["role"] == "train"}


@pytest.mark.parametrize("groups", [1, 2])
def test_measures_are_those_of_a_loop_over_samples(world, tmp_path, groups):
    rows, right, models = measure(world, tmp_path, range(6), groups=groups)
    known = [right_samples(world, path, world.train) for path in models]
    tested = [right_samples(world, path, world.test) for path in models]
    previous = set()
    for row in rows:
        round_ = row["round"]
        own = samples_of(world, ROUNDS[round_])
        expected = dict.fromkeys(RETENTION_SCHEMA.names)
        distances = [one for one in ROUNDS[round_].values() if one is not None]
        expected |= {
            "round": round_,
            "samples": len(own),
            "distance": sum(distances) / len(distances) if distances else None,
            "top1_accuracy": pytest.approx(100 * len(tested[round_]) / DATA["test"]),
        }
        if own:
            current = 100 * len(known[round_] & own) / len(own)
            expected["current"] = pytest.approx(current)
        if own and previous:
            before, after = known[round_ - 1] & previous, known[round_] & previous
            there = 100 * len(after) / len(previous)
            expected |= {
                "previous": pytest.approx(there),
                "forget_score": pytest.approx(current - there),
                "lost": len(before - after),
                "gained": len(after - before),
                "retained": len(before & after),
            }
        assert row == expected
        previous = own or previous
    assert [row["round"] for row in rows] == [1, 2, 3, 4, 5]
    assert set(right["start"].nonzero().flatten().tolist()) == tested[0]
    assert set(right["end"].nonzero().flatten().tolist()) == tested[5]


def test_a_model_that_does_not_change_forgets_nothing(world, tmp_path):
    same = {round_: {3: 0.0} for round_ in (1, 2, 3)}
    rows, right, _ = measure(world, tmp_path, [7, 7, 7, 7], same)
    for row in rows[1:]:
        assert (row["forget_score"], row["lost"], row["gained"]) == (0.0, 0, 0)
        known = pytest.approx(100 * row["retained"] / row["samples"])
        assert row["current"] == row["previous"] == known
    assert torch.equal(right["start"], right["end"])


def test_a_round_of_nobody_is_passed_over(world, tmp_path):
    """The round after it is compared on the samples of the round before it."""
    rows, _, _ = measure(world, tmp_path, range(4), {1: {0: 0.0}, 2: {}, 3: {1: 0.0}})
    assert rows[1]["samples"] == 0
    assert rows[1]["current"] is rows[1]["lost"] is None
    counts = sum(rows[2][name] for name in ("lost", "gained", "retained"))
    assert 0 < counts <= rows[0]["samples"]
