"""The stages that train, average, distil and score, called in a chain on a few digits.

What they write is compared with softmax regression in float64 NumPy wherever numbers count.
"""

import json
import os
import statistics
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import roc_auc_score
from tests.shared.settings import federated
from tests.shared.stages import (
    aggregation,
    dataset,
    distillation,
    evaluation,
    initial_model,
    judged_distillation,
    local_evaluation,
    local_model,
    local_training,
    logits,
    participation,
    partition,
    recipe,
)

from fedstage.algorithm.measures.metrics import METRICS_SCHEMA
from fedstage.errors import FedstageError
from fedstage.randomness import torch_generator
from fedstage.stages.aggregation import PARTICIPANTS_SCHEMA
from fedstage.storage.files import load_json
from fedstage.storage.tables import load_table, save_table
from fedstage.storage.tensors import load_tensors, save_tensors

CLIENTS, PARTICIPANTS, SEED, TRAIN = 5, 4, 3, 100
DATA = {"name": "digits", "test": 80, "held_out": 30, "server_validation": 40}
SPLIT = {"name": "dirichlet", "alpha": 1.0, "min_samples": 8}
LINEAR = {"name": "logistic_regression"}
CNN = {"name": "cnn_small", "width": 2, "hidden": 6, "norm": "batch"}
WHOLE = {"learning_rate": 0.02, "batch_size": 1000, "epochs": 3}  # every batch is all samples
TOO_FAST = {"client": WHOLE | {"learning_rate": 1e38}}
SETTINGS = federated(
    data=DATA,
    clients=CLIENTS,
    partition=SPLIT,
    validation=0.2,
    participants=PARTICIPANTS,
    model=LINEAR,
    client=WHOLE,
    numerics={"device": "cpu"},
    seed=SEED,
)
DISTILLED = {
    "global_models": 2,
    "ensemble": {"name": "aggregated", "checkpoints": 2},
    "global": "designated",
    "server": {"learning_rate": 0.01, "batch_size": 1000, "steps": 4},
}


@dataclass(frozen=True)
class World:
    """The files that rounds start from."""

    folder: Path
    train: Path
    test: Path
    held_out: Path
    server_validation: Path
    info: Path
    clients: Path
    histogram: Path
    participation: Path

    def initial(self, model, group=0):
        return self.folder / f"initial_{model['name']}_{group}.safetensors"


def empty_world(folder):
    parts = ("train", "test", "held_out", "server_validation")
    images = {name: folder / f"{name}.safetensors" for name in parts}
    names = ("clients", "histogram", "participation")
    tables = {name: folder / f"{name}.parquet" for name in names}
    return World(folder, info=folder / "info.json", **images, **tables)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = empty_world(tmp_path_factory.mktemp("world"))
    dataset(
        settings=json.dumps(DATA), train=made.train, test=made.test, held_out=made.held_out,
        server_validation=made.server_validation, info=made.info,
    )  # fmt: skip
    tensors, _ = load_tensors(made.train)
    save_tensors(made.train, {name: value[:TRAIN] for name, value in tensors.items()})
    names = ("clients", "partition", "validation", "seed")
    chosen = json.dumps({name: SETTINGS[name] for name in names})
    partition(settings=chosen, train=made.train, output=made.clients, histogram=made.histogram)
    participation(
        clients=CLIENTS, participants=PARTICIPANTS, seed=SEED, first=1, last=4,
        output=made.participation,
    )  # fmt: skip
    for model in (LINEAR, CNN):
        for group in (0, 1):
            chosen, output = json.dumps({"model": model, "seed": SEED}), made.initial(model, group)
            initial_model(settings=chosen, group=group, info=made.info, output=output)
    return made


# --- calling the stages -------------------------------------------------------------------------


def written_recipe(folder, **changes):
    path = folder / "recipe.yaml"
    recipe(settings=json.dumps(SETTINGS | changes), output=path)
    return path


def trained(world, folder, recipe_file, participant, round_=1, group=0, start=None, state=None):
    output = folder / f"round_{round_}_participant_{participant}.safetensors"
    local_training(
        recipe=recipe_file, round=round_, group=group, participants=[participant],
        data=world.train, info=world.info,
        clients=world.clients, participation=world.participation,
        start=start or world.initial(LINEAR), state=[state] if state else None, outputs=[output],
    )  # fmt: skip
    return output


@dataclass(frozen=True)
class Aggregate:
    """The files of a group's round."""

    model: Path
    participants: Path
    state: Path | None
    updates: list[Path]


def averaged(
    world, folder, recipe_file, updates, name="group_0", start=None, state=None, keep=False
):
    made = Aggregate(
        folder / f"{name}.safetensors",
        folder / f"{name}.parquet",
        folder / f"{name}_state.safetensors" if keep else None,
        updates,
    )
    aggregation(
        recipe=recipe_file, info=world.info, start=start or world.initial(LINEAR), updates=updates,
        state=state, output=made.model, participants=made.participants, new_state=made.state,
    )  # fmt: skip
    return made


def federated(world, folder, rounds, model=LINEAR, **changes):
    """Run rounds of one group; return what each wrote."""
    stateful = changes.get("local") == "scaffold"
    recipe_file = written_recipe(folder, model=model, **changes)
    start, state, made = world.initial(model), None, []
    for round_ in range(1, rounds + 1):
        options = {"start": start, "state": state}
        updates = [
            trained(world, folder, recipe_file, participant, round_, **options)
            for participant in range(PARTICIPANTS)
        ]
        name = f"round_{round_}"
        made.append(averaged(world, folder, recipe_file, updates, name, keep=stateful, **options))
        start, state = made[-1].model, made[-1].state
    return made


def logits_of(
    world,
    folder,
    recipe_file,
    members,
    models,
    data=None,
    clients=None,
    name="logits",
    **drawn_from,
):
    output = folder / f"{name}.safetensors"
    logits(
        recipe=recipe_file, members=members, models=models, data=data or world.test,
        info=world.info,
        clients=clients, output=output, **drawn_from,
    )  # fmt: skip
    return output


def evaluated(world, folder, recipe_file, what, models, tables, role="test", **changes):
    output = folder / f"{what}-{role}.parquet"
    inputs = {
        "data": world.test if role == "test" else world.train,
        "info": world.info,
        "clients": world.clients,
        "histogram": world.histogram,
    }
    rounds = {row["round"] for path in tables for row in load_table(path).to_pylist()}
    inputs |= {"rounds": max(rounds), "every": min(rounds)}
    evaluation(
        recipe=recipe_file, evaluated=what, role=role, models=models, participants=tables,
        output=output, **(inputs | changes),
    )  # fmt: skip
    table = load_table(output)
    assert table.schema.remove_metadata() == METRICS_SCHEMA
    scored, taking_part = table.to_pylist(), pd.concat([pd.read_parquet(path) for path in tables])
    for row in scored:
        trained = taking_part[(taking_part["round"] == row["round"]) & ~taking_part["dropped"]]
        total = (trained["loss"] * trained["samples"]).sum()
        mean = total / trained["samples"].sum() if len(trained) else None
        assert row["training_loss"] == pytest.approx(mean)
    return scored


# --- by hand ------------------------------------------------------------------------------------


def pixels(world, part="train"):
    info, images = load_json(world.info), load_tensors(getattr(world, part))[0]["images"]
    flat = images.numpy().reshape(len(images), -1).astype(np.float64)
    return (flat / 255 - info["mean"][0]) / info["std"][0]


def labels(world, part="train"):
    return load_tensors(getattr(world, part))[0]["labels"].numpy()


def samples_of(world, role, client=None):
    rows = load_table(world.clients).to_pylist()
    return [
        row["sample"] for row in rows if row["role"] == role and client in (None, row["client"])
    ]


def client_of(world, round_, participant):
    rows = load_table(world.participation).to_pylist()
    (client,) = [
        r["client"] for r in rows if (r["round"], r["participant"]) == (round_, participant)
    ]
    return client


def weights_in(path, prefix=""):
    tensors, _ = load_tensors(path)
    names = ("linear.weight", "linear.bias")
    return [tensors[prefix + name].double().numpy() for name in names]


def slow_logits(weights, x):
    return x @ weights[0].T + weights[1]


def softmax(scores, tau=1.0):
    odds = np.exp((scores - scores.max(1, keepdims=True)) / tau)
    return odds / odds.sum(1, keepdims=True)


def slow_gradient(weights, x, y):
    wrong = (softmax(slow_logits(weights, x)) - np.eye(10)[y]) / len(x)
    return [wrong.T @ x, wrong.sum(0)]


def slow_training(
    weights, x, y, steps=3, rate=0.02, correction=(0.0, 0.0), gradient_of=slow_gradient
):
    for _ in range(steps):
        gradient = gradient_of(weights, x, y)
        weights = [
            w - rate * (g + c) for w, g, c in zip(weights, gradient, correction, strict=True)
        ]
    return weights


def own_data(world, client):
    chosen = samples_of(world, "train", client)
    return pixels(world)[chosen], labels(world)[chosen]


def close(ours, expected, tolerance=1e-5):
    return all(
        np.allclose(a, b, rtol=tolerance, atol=tolerance)
        for a, b in zip(ours, expected, strict=True)
    )


def tensor_bytes(path, prefix=""):
    tensors, _ = load_tensors(path)
    return sum(
        value.numel() * value.element_size()
        for name, value in tensors.items()
        if name.startswith(prefix)
    )


# --- local training -----------------------------------------------------------------------------


@pytest.mark.parametrize("participant", range(PARTICIPANTS))
def test_update_says_whose_it_is_and_what_it_did(world, tmp_path, participant):
    client = {"learning_rate": 0.1, "batch_size": 4, "epochs": 2}
    output = trained(
        world, tmp_path, written_recipe(tmp_path, client=client), participant, round_=2, group=1
    )
    tensors, notes = load_tensors(output)
    who = client_of(world, 2, participant)
    n = len(samples_of(world, "train", who))
    loss = notes.pop("loss")
    steps = 2 * ((n + 3) // 4 - (n % 4 == 1 and n > 1))  # a last sample joins the batch before
    place = {"round": 2, "group": 1, "participant": participant, "client": who, "base_round": 1}
    assert notes == place | {"samples": n, "steps": steps}
    assert 0 < loss < 10
    assert set(tensors) == {"model/linear.weight", "model/linear.bias"}


def test_update_is_that_of_the_clients_training_samples(world, tmp_path):
    recipe_file = written_recipe(tmp_path)
    for participant in range(PARTICIPANTS):
        x, y = own_data(world, client_of(world, 1, participant))
        expected = slow_training(weights_in(world.initial(LINEAR)), x, y)
        output = trained(world, tmp_path, recipe_file, participant)
        assert close(weights_in(output, "model/"), expected)


def test_round_decay_multiplies_once_a_round(world, tmp_path):
    recipe_file = written_recipe(tmp_path, client=WHOLE | {"round_decay": 0.5})
    for round_ in (1, 3):
        x, y = own_data(world, client_of(world, round_, 0))
        rate = 0.02 * 0.5 ** (round_ - 1)
        expected = slow_training(weights_in(world.initial(LINEAR)), x, y, rate=rate)
        output = trained(world, tmp_path, recipe_file, participant=0, round_=round_)
        assert close(weights_in(output, "model/"), expected)


def test_round_cosine_falls_over_the_rounds_and_stays_at_zero(world, tmp_path):
    recipe_file = written_recipe(tmp_path, client=WHOLE | {"round_cosine": 2})
    start = weights_in(world.initial(LINEAR))
    for round_, share in ((1, 1.0), (2, 0.5), (3, 0.0)):
        x, y = own_data(world, client_of(world, round_, 0))
        output = trained(world, tmp_path, recipe_file, participant=0, round_=round_)
        expected = slow_training(start, x, y, rate=0.02 * share)
        assert close(weights_in(output, "model/"), expected)


def test_batches_depend_on_the_round_but_not_on_the_group(world, tmp_path):
    client = {"learning_rate": 0.1, "batch_size": 4, "epochs": 1}
    recipe_file = written_recipe(tmp_path, client=client)
    who = client_of(world, 1, 0)
    participant = next(
        participant
        for participant in range(PARTICIPANTS)
        if client_of(world, 2, participant) == who
    )
    first = load_tensors(trained(world, tmp_path, recipe_file, 0, round_=1))[0]
    other_group = load_tensors(trained(world, tmp_path, recipe_file, 0, round_=1, group=1))[0]
    other_round = load_tensors(trained(world, tmp_path, recipe_file, participant, round_=2))[0]
    assert torch.equal(first["model/linear.weight"], other_group["model/linear.weight"])
    assert not torch.equal(first["model/linear.weight"], other_round["model/linear.weight"])


def test_batches_that_go_on_make_of_three_rounds_one(world, tmp_path):
    client = {"learning_rate": 0.1, "batch_size": 4, "steps": 3, "batches": "continued"}
    options = {"participants": CLIENTS}  # of whom four have a participant here
    recipe_file = written_recipe(tmp_path / "short", client=client, **options)
    participants = range(PARTICIPANTS)
    taking_part = [
        {client_of(world, round_, participant): participant for participant in participants}
        for round_ in (1, 2, 3)
    ]
    who = next(iter(set.intersection(*map(set, taking_part))))
    start = world.initial(LINEAR)
    for round_, index_of in enumerate(taking_part, start=1):
        update = trained(world, tmp_path, recipe_file, index_of[who], round_, start=start)
        start = tmp_path / f"after_{round_}.safetensors"
        tensors = load_tensors(update)[0].items()
        save_tensors(start, {name.removeprefix("model/"): value for name, value in tensors})
    long = written_recipe(tmp_path / "long", client=client | {"steps": 9}, **options)
    once = load_tensors(trained(world, tmp_path, long, taking_part[0][who]))[0]
    weight = load_tensors(start)[0]["linear.weight"]
    assert torch.equal(weight, once["model/linear.weight"])


def test_data_that_has_changed_is_read_again_in_the_same_process(world, tmp_path):
    data, recipe_file = tmp_path / "train.safetensors", written_recipe(tmp_path)
    tensors, _ = load_tensors(world.train)
    updates = []
    for second, images in enumerate([tensors["images"], tensors["images"].flip(-1)]):
        save_tensors(data, tensors | {"images": images})
        os.utime(data, (second, second))
        changed = replace(world, train=data)
        updates.append(trained(changed, tmp_path, recipe_file, participant=0).read_bytes())
    assert updates[0] != updates[1]
    assert updates[0] == trained(world, tmp_path, recipe_file, participant=0).read_bytes()


def test_training_does_not_write_to_the_images_that_the_process_shares(world, tmp_path):
    client = {"learning_rate": 0.1, "batch_size": 4, "epochs": 1, "augmentation": "crop_flip"}
    recipe_file = written_recipe(tmp_path, client=client)
    trained(world, tmp_path, recipe_file, participant=0)
    first = trained(world, tmp_path, recipe_file, participant=0).read_bytes()
    copy = tmp_path / "copy.safetensors"
    copy.write_bytes(world.train.read_bytes())
    assert (
        trained(replace(world, train=copy), tmp_path, recipe_file, participant=0).read_bytes()
        == first
    )


# --- aggregation --------------------------------------------------------------------------------


def test_aggregate_says_what_it_is_made_of(world, tmp_path):
    (made,) = federated(world, tmp_path, 1)
    samples = sum(
        len(samples_of(world, "train", client_of(world, 1, participant)))
        for participant in range(PARTICIPANTS)
    )
    assert load_tensors(made.model)[1] == {"round": 1, "group": 0, "samples": samples}


def parameters(tensors, prefix=""):
    """Return all parameters of a model in one vector, float64; buffers left out."""
    names = (name for name in sorted(tensors) if name.startswith(prefix))
    kept = [name for name in names if "running" not in name and "num_batches" not in name]
    return torch.cat([tensors[name].double().flatten() for name in kept])


@pytest.mark.parametrize("model", [LINEAR, CNN], ids=lambda model: model["name"])
def test_participants_table_lists_who_took_part_and_what_travelled(world, tmp_path, model):
    (made,) = federated(world, tmp_path, 1, model=model)
    table = load_table(made.participants)
    assert table.schema.remove_metadata() == PARTICIPANTS_SCHEMA
    before = parameters(load_tensors(world.initial(model))[0])
    for participant, row in enumerate(table.to_pylist()):
        tensors, notes = load_tensors(made.updates[participant])
        change = parameters(tensors, "model/") - before
        assert row == notes | {
            "dropped": False,
            "distance": pytest.approx(100 * float(change.norm() / before.norm())),
            "bytes_up": tensor_bytes(made.updates[participant]),
            "bytes_down": tensor_bytes(world.initial(model)),
        }
    assert table.num_rows == PARTICIPANTS


# --- SCAFFOLD -----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [LINEAR, CNN], ids=lambda model: model["name"])
def test_scaffold_sends_parameters_twice_in_both_directions(world, tmp_path, model):
    for round_, made in enumerate(federated(world, tmp_path, 2, model=model, local="scaffold")):
        buffers = sum(
            value.numel() * value.element_size()
            for name, value in load_tensors(made.model)[0].items()
            if "running" in name or "num_batches" in name
        )
        whole = tensor_bytes(made.model)
        assert (buffers > 0) == (model is CNN)
        for participant, row in enumerate(load_table(made.participants).to_pylist()):
            assert row["bytes_up"] == row["bytes_down"] == 2 * (whole - buffers) + buffers
            assert row["bytes_up"] == tensor_bytes(made.updates[participant])
            assert tensor_bytes(made.updates[participant], "payload/") == whole - buffers, round_


# --- divergence ---------------------------------------------------------------------------------


def test_divergence_stops_and_names_client_round_and_step(world, tmp_path):
    recipe_file = written_recipe(tmp_path, **TOO_FAST)
    with pytest.raises(FedstageError) as raised:
        trained(world, tmp_path, recipe_file, participant=1, round_=3)
    client = client_of(world, 3, 1)
    message = f"client {client}, round 3: the loss is not finite at step 2; lower "
    assert str(raised.value).startswith(message)
    assert "client.learning_rate = 1e+38" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == [recipe_file]


def with_dropped(world, folder, dropped, state=None, round_=1, **changes):
    """Train round 1, with a learning rate that diverges for the `dropped`; aggregate it."""
    recipe_file = written_recipe(folder, on_divergence="drop", **changes)
    fast = written_recipe(folder / "fast", on_divergence="drop", **(changes | TOO_FAST))
    updates = [
        trained(
            world,
            folder,
            fast if participant in dropped else recipe_file,
            participant,
            round_,
            state=state,
        )
        for participant in range(PARTICIPANTS)
    ]
    keep = changes.get("local") == "scaffold"
    name = f"group_0_round_{round_}"
    return recipe_file, averaged(world, folder, recipe_file, updates, name, state=state, keep=keep)


def test_dropped_update_is_empty_and_says_so(world, tmp_path):
    _, made = with_dropped(world, tmp_path, dropped=(2,))
    tensors, notes = load_tensors(made.updates[2])
    client = client_of(world, 1, 2)
    samples = len(samples_of(world, "train", client))
    assert tensors == {}
    assert notes == {
        "round": 1, "group": 0, "participant": 2, "client": client, "base_round": 0,
        "samples": samples,
        "diverged_at": 2,
    }  # fmt: skip


def test_dropped_participants_do_not_weigh(world, tmp_path):
    _, made = with_dropped(world, tmp_path, dropped=(0, 2))
    read = {participant: load_tensors(made.updates[participant]) for participant in (1, 3)}
    samples = {participant: notes["samples"] for participant, (_, notes) in read.items()}
    for name in ("linear.weight", "linear.bias"):
        parts = {
            participant: tensors[f"model/{name}"].double()
            for participant, (tensors, _) in read.items()
        }
        expected = sum(
            samples[participant] / sum(samples.values()) * parts[participant]
            for participant in (1, 3)
        )
        assert torch.equal(load_tensors(made.model)[0][name], expected.float())
    assert load_tensors(made.model)[1]["samples"] == sum(samples.values())
    rows = load_table(made.participants).to_pylist()
    assert [row["dropped"] for row in rows] == [True, False, True, False]
    assert [row["loss"] is None for row in rows] == [True, False, True, False]
    assert [row["bytes_up"] for row in rows] == [0, 2600, 0, 2600]  # (64 + 1) * 10 * 4 bytes
    assert {row["bytes_down"] for row in rows} == {2600}


def test_all_dropped_keeps_the_start_model_and_the_state(world, tmp_path):
    _, first = with_dropped(world, tmp_path, (), local="scaffold")
    everyone = range(PARTICIPANTS)
    _, second = with_dropped(
        world, tmp_path, everyone, local="scaffold", state=first.state, round_=2
    )
    start, after = load_tensors(world.initial(LINEAR))[0], load_tensors(second.model)
    assert after[1] == {"round": 2, "group": 0, "samples": 0}
    assert start.keys() == after[0].keys()
    assert all(torch.equal(start[name], after[0][name]) for name in start)
    state, kept = load_tensors(first.state)[0], load_tensors(second.state)[0]
    assert state.keys() == kept.keys()
    assert all(torch.equal(state[name], kept[name]) for name in state)
    assert len(state) == 2 * (1 + PARTICIPANTS)


def test_dropped_client_leaves_its_variate_and_its_share_of_c(world, tmp_path):
    _, first = with_dropped(world, tmp_path, (), local="scaffold")
    _, second = with_dropped(world, tmp_path, (1,), local="scaffold", state=first.state, round_=2)
    before, after = load_tensors(first.state)[0], load_tensors(second.state)[0]
    gone = client_of(world, 2, 1)
    own = f"client/{gone}/linear.weight"
    assert (own in before) == (own in after)
    assert own not in before or torch.equal(before[own], after[own])
    expected = before["server/linear.weight"].double()
    for participant in (0, 2, 3):
        expected += load_tensors(second.updates[participant])[0]["payload/linear.weight"] / CLIENTS
    assert torch.allclose(after["server/linear.weight"].double(), expected, atol=1e-6)


# --- logits -------------------------------------------------------------------------------------


def test_logits_of_client_models_by_hand(world, tmp_path):
    (made,) = federated(world, tmp_path, 1)
    recipe_file = tmp_path / "recipe.yaml"
    output = logits_of(world, tmp_path, recipe_file, "clients", made.updates[::-1])
    tensors, notes = load_tensors(output)
    read = [load_tensors(path)[1] for path in made.updates]
    whose = {
        "samples": [one["samples"] for one in read],
        "clients": [one["client"] for one in read],
    }
    assert notes == {"round": 1, "group": 0, "members": "clients"} | whose
    assert tensors["logits"].shape == (PARTICIPANTS, DATA["test"], 10)
    for member, update in zip(tensors["logits"], made.updates, strict=True):
        expected = slow_logits(weights_in(update, "model/"), pixels(world, "test"))
        assert np.allclose(member.numpy(), expected, atol=1e-4)


def test_logits_of_the_validation_role_are_those_of_its_samples(world, tmp_path):
    (made,) = federated(world, tmp_path, 1)
    output = logits_of(
        world, tmp_path, tmp_path / "recipe.yaml", "aggregated", [made.model], world.train,
        clients=world.clients,
    )  # fmt: skip
    chosen = samples_of(world, "validation")
    expected = slow_logits(weights_in(made.model), pixels(world)[chosen])
    assert 0 < len(chosen) < TRAIN
    assert np.allclose(load_tensors(output)[0]["logits"].numpy(), expected[None], atol=1e-4)


def test_logits_leave_out_who_was_dropped(world, tmp_path):
    recipe_file, made = with_dropped(world, tmp_path, dropped=(0, 2))
    tensors, notes = load_tensors(
        logits_of(world, tmp_path, recipe_file, "clients", made.updates, world.held_out)
    )
    rows = load_table(made.participants).to_pylist()
    assert tensors["logits"].shape == (2, DATA["held_out"], 10)
    assert notes["samples"] == [rows[1]["samples"], rows[3]["samples"]]


def test_logits_of_nobody_are_empty(world, tmp_path):
    recipe_file, made = with_dropped(world, tmp_path, range(PARTICIPANTS))
    tensors, notes = load_tensors(logits_of(world, tmp_path, recipe_file, "clients", made.updates))
    assert tensors["logits"].shape == (0, DATA["test"], 10)
    assert notes["samples"] == []


@pytest.mark.parametrize("kind", ["gaussian_3", "dirichlet_3", "gaussian_3_as_released"])
def test_logits_of_models_that_are_drawn(world, tmp_path, kind):
    (made,) = federated(world, tmp_path, 1, model=CNN)
    recipe_file, start = tmp_path / "recipe.yaml", world.initial(CNN)
    drawn_from = {"aggregated": made.model, "start": start}
    ask = (world, tmp_path, recipe_file, kind, made.updates[::-1], world.held_out)
    tensors, notes = load_tensors(logits_of(*ask, **drawn_from))
    samples = load_tensors(made.model)[1]["samples"]
    assert notes == {"round": 1, "group": 0, "samples": [samples] * 3, "members": kind}
    first, second, third = tensors["logits"]
    assert first.shape == (DATA["held_out"], 10)
    assert not torch.equal(first, second)
    assert not torch.equal(second, third)
    in_order = logits_of(world, tmp_path, recipe_file, kind, made.updates, world.held_out,
                         name="in_order", **drawn_from)  # fmt: skip
    assert torch.equal(load_tensors(in_order)[0]["logits"], tensors["logits"])


def test_nothing_is_drawn_where_nobody_answered(world, tmp_path):
    recipe_file, made = with_dropped(world, tmp_path, range(PARTICIPANTS))
    ask = (world, tmp_path, recipe_file, "gaussian_3", made.updates)
    tensors, notes = load_tensors(logits_of(*ask, aggregated=made.model))
    assert tensors["logits"].shape == (0, DATA["test"], 10)
    assert notes["samples"] == []


# --- distillation -------------------------------------------------------------------------------


@dataclass(frozen=True)
class TwoGroups:
    """Round 1 of two groups, and what their models say about the public images."""

    recipe: Path
    models: list[Path]
    public: list[Path]


def two_groups(world, folder, **changes):
    recipe_file = written_recipe(folder, **(DISTILLED | changes))
    models, public = [], []
    for group, participants in enumerate([(0, 1), (2, 3)]):
        start = world.initial(LINEAR, group)
        updates = [
            trained(world, folder, recipe_file, s, group=group, start=start) for s in participants
        ]
        made = averaged(world, folder, recipe_file, updates, f"group_{group}", start)
        models.append(made.model)
        name = f"public_{group}"
        public.append(
            logits_of(
                world, folder, recipe_file, "aggregated", [made.model], world.held_out, name=name
            )
        )
    return TwoGroups(recipe_file, models, public)


def distilled(world, folder, made, **changes):
    output = folder / "distilled.safetensors"
    inputs = {"recipe": made.recipe, "start": made.models[0], "logits": made.public}
    inputs |= {"public": world.held_out, "info": world.info, "round": 1, "group": 0}
    stage = judged_distillation if "judged" in changes else distillation
    stage(**(inputs | changes), output=output)
    return output


@pytest.mark.parametrize(("after", "same"), [(1, True), (0, False)])
def test_the_first_rounds_have_no_buffer(world, tmp_path, after, same):
    plain = distilled(world, tmp_path, two_groups(world, tmp_path))
    server = DISTILLED["server"] | {"buffer": {"after": after}}
    other = tmp_path / "buffered"
    found = distilled(world, other, two_groups(world, other, server=server))
    assert (plain.read_bytes() == found.read_bytes()) == same


def test_group_and_round_decide_the_batches_of_distillation(world, tmp_path):
    small = DISTILLED["server"] | {"batch_size": 5}
    made = two_groups(world, tmp_path, server=small)
    first = load_tensors(distilled(world, tmp_path, made))[0]
    for change in ({"round": 2}, {"group": 1}):
        other = load_tensors(distilled(world, tmp_path, made, **change))[0]
        assert not torch.equal(other["linear.weight"], first["linear.weight"])


def test_diverging_student_is_named(world, tmp_path):
    made = two_groups(world, tmp_path, server=DISTILLED["server"] | {"learning_rate": 1e38})
    message = "distillation, round 1, group 0: the loss is not finite at step 2; lower server"
    with pytest.raises(FedstageError, match=message):
        distilled(world, tmp_path, made)
    assert not (tmp_path / "distilled.safetensors").exists()


def test_clients_that_were_dropped_do_not_teach(world, tmp_path):
    clients = {"name": "clients"}
    teaching = {"ensemble": clients, "global": "basic", "server": DISTILLED["server"]}
    recipe_file, made = with_dropped(world, tmp_path, (1, 2, 3), **teaching)
    held_out = world.held_out
    public = logits_of(world, tmp_path, recipe_file, "clients", made.updates, held_out)
    groups = TwoGroups(recipe_file, [made.model], [public])
    alone = load_tensors(distilled(world, tmp_path, groups))[0]
    student = load_tensors(made.model)[0]  # the only one left is its own teacher
    assert torch.allclose(alone["linear.weight"], student["linear.weight"], atol=1e-5)


def test_ensemble_without_members_is_named(world, tmp_path):
    teaching = {"ensemble": "clients", "global": "basic", "server": DISTILLED["server"]}
    recipe_file, made = with_dropped(world, tmp_path, range(PARTICIPANTS), **teaching)
    held_out = world.held_out
    public = logits_of(world, tmp_path, recipe_file, "clients", made.updates, held_out)
    with pytest.raises(FedstageError, match=r"logits\.safetensors: no member of the ensemble"):
        distilled(world, tmp_path, TwoGroups(recipe_file, [made.model], [public]))


@pytest.mark.parametrize("images", ["original", "augmented"])
def test_a_student_sees_augmented_images_and_its_teacher_these_or_the_original(
    world, tmp_path, images
):
    server = DISTILLED["server"] | {"augmentation": "flip", "teacher_images": images}
    made = two_groups(world, tmp_path, server=server)
    read = {"logits": None, "members": made.models} if images == "augmented" else {}
    ours = weights_in(distilled(world, tmp_path, made, **read))
    x = pixels(world, "held_out")
    teacher = sum(slow_logits(weights_in(model), x) for model in made.models) / 2
    batches = torch_generator(SEED, "distillation", 1, 0, "batches")
    flips = torch_generator(SEED, "distillation", 1, 0, "augmentation")
    student = weights_in(made.models[0])
    for _ in range(4):
        order = torch.randperm(len(x), generator=batches).numpy()
        flipped = torch.rand(len(x), generator=flips).numpy() < 0.5
        seen = x[order].reshape(-1, 8, 8)
        seen = np.where(flipped[:, None, None], seen[:, :, ::-1], seen).reshape(len(x), -1)
        told = teacher[order]
        if images == "augmented":
            told = sum(slow_logits(weights_in(model), seen) for model in made.models) / 2
        gap = softmax(slow_logits(student, seen), 4.0) - softmax(told, 4.0)
        wrong = 4.0 * gap / len(x)
        student = [student[0] - 0.01 * wrong.T @ seen, student[1] - 0.01 * wrong.sum(0)]
    assert close(ours, student)


SERVER = {"learning_rate": 0.05, "batch_size": 10, "steps": 8}
STOPPED = SERVER | {"learning_rate": 1.0, "early_stopping": {"every": 2, "patience": 2}}
SEEN = SERVER | {"augmentation": "flip", "teacher_images": "augmented"}


@pytest.mark.parametrize("server", [SERVER, STOPPED, SEEN], ids=["plain", "stopped", "augmented"])
def test_a_distillation_tells_how_its_student_and_teacher_agree(world, tmp_path, caplog, server):
    """On public samples as they are, by the weights in its files."""
    made = two_groups(world, tmp_path, data=DATA, server=server)
    given = {"logits": None, "members": made.models} if server is SEEN else {}
    with caplog.at_level("INFO", "fedstage.algorithm"):
        output = distilled(
            world, tmp_path, made, server_validation=world.server_validation, **given
        )
    (row,) = [record.distilled for record in caplog.records if hasattr(record, "distilled")]
    x = pixels(world, "held_out")
    teacher = sum(slow_logits(weights_in(model), x) for model in made.models).argmax(1)
    was, now = (slow_logits(weights_in(path), x).argmax(1) for path in (made.models[0], output))
    assert row == pytest.approx({
        "round": 1, "group": 0, "samples": len(x), "changed": 100 * np.mean(was != now),
        "agreement_before": 100 * np.mean(was == teacher),
        "agreement": 100 * np.mean(now == teacher),
    })  # fmt: skip
    assert row["changed"] > 0


def test_students_of_a_server_that_stops_early_say_when(world, tmp_path):
    server = SERVER | {"early_stopping": {"every": 2, "patience": 2}}
    made = two_groups(world, tmp_path, data=DATA, server=server)
    output = distilled(world, tmp_path, made, server_validation=world.server_validation)
    tensors, notes = load_tensors(output)
    assert notes["best_step"] in (2, 4, 6, 8)
    assert notes["steps"] == min(notes["best_step"] + 2, 8)
    folder = tmp_path / "plain"
    plain = two_groups(world, folder, server=SERVER | {"steps": notes["best_step"]})
    expected = load_tensors(distilled(world, folder, plain))[0]
    assert all(torch.equal(tensors[name], expected[name]) for name in expected)


def judged_world(world, folder, **changes):
    """Round 1 of one group whose participants 1 and 2 answer class 0 whatever they see."""
    server = changes.pop("server", SERVER) | {"drop_worst": "as_published"}
    settings = {"data": DATA, "ensemble": "clients", "global": "basic", "server": server}
    settings["client"] = WHOLE | {"learning_rate": 0.2, "epochs": 10}
    recipe_file = written_recipe(folder, **(settings | changes))
    updates = [
        trained(world, folder, recipe_file, participant) for participant in range(PARTICIPANTS)
    ]
    for path in updates[1:3]:
        tensors, notes = load_tensors(path)
        fixed = {name: torch.zeros_like(value) for name, value in tensors.items()}
        save_tensors(path, fixed, notes)
    made = averaged(world, folder, recipe_file, updates)
    public, judged = (
        logits_of(world, folder, recipe_file, "clients", updates, data, name=f"{name}_logits")
        for name, data in (("public", world.held_out), ("judged", world.server_validation))
    )
    return TwoGroups(recipe_file, [made.model], [public]), {
        "judged": [judged], "updates": updates, "server_validation": world.server_validation,
    }  # fmt: skip


@pytest.mark.parametrize("images", ["original", "augmented"])
def test_the_worst_neither_teach_nor_are_averaged(world, tmp_path, images):
    server = SERVER | {"augmentation": "flip", "teacher_images": images}
    live = images == "augmented"

    def student(folder, groups, teachers, **more):
        given = {"logits": None, "members": teachers} if live else {}
        return distilled(world, folder, groups, **given, **more)

    zeros = (labels(world, "server_validation") == 0).mean()
    assert zeros <= 0.1  # so that answering 0 is no better than chance
    made, judging = judged_world(world, tmp_path, server=server)
    output = student(tmp_path, made, judging["updates"], **judging)
    assert load_tensors(output)[1]["dropped"] == 2
    kept = [load_tensors(path) for path in (judging["updates"][0], judging["updates"][3])]
    names, samples = kept[0][0], [notes["samples"] for _, notes in kept]
    start, folder = tmp_path / "start.safetensors", tmp_path / "plain"
    average = {
        name.removeprefix("model/"): sum(n * tensors[name] for (tensors, _), n in zip(
            kept, samples, strict=True)) / sum(samples)
        for name in names
    }  # fmt: skip
    save_tensors(start, average, load_tensors(made.models[0])[1])
    recipe_file = written_recipe(folder, ensemble="clients", server=server, **{"global": "basic"})
    two = [judging["updates"][0], judging["updates"][3]]
    public = logits_of(world, folder, recipe_file, "clients", two, world.held_out)
    plain = student(folder, TwoGroups(recipe_file, [start], [public]), two)
    assert close(weights_in(output), weights_in(plain), 1e-5)
    everybody = TwoGroups(recipe_file, made.models, made.public)
    theirs = student(folder, everybody, judging["updates"])
    assert not close(weights_in(output), weights_in(theirs), 1e-2)


# --- evaluation ---------------------------------------------------------------------------------


def slow_scores(world, answers, y):
    """Return accuracy, loss, own_mean and own_std of logits, sample by sample."""
    right = answers.argmax(1) == y
    loss = -np.mean([np.log(p[c]) for p, c in zip(softmax(answers), y, strict=True)])
    own = []
    for client in range(CLIENTS):
        mix = labels(world)[samples_of(world, "train", client)]
        hits = [np.mean(right[y == label]) for label in mix if (y == label).any()]
        own.append(100 * np.mean(hits))
    return 100 * right.mean(), loss, np.mean(own), statistics.stdev(own)


def assert_scores(row, world, answers, y):
    by_class = [100 * np.mean(answers[y == label].argmax(1) == label) for label in np.unique(y)]
    assert row["balanced_accuracy"] == pytest.approx(np.mean(by_class), rel=1e-9)
    area = (
        100 * roc_auc_score(y, softmax(answers), multi_class="ovr") if len(by_class) == 10 else None
    )
    assert row["auc"] == pytest.approx(area, rel=1e-6)
    expected = slow_scores(world, answers, y)
    ours = [row[name] for name in ("top1_accuracy", "loss", "own_mean", "own_std")]
    assert ours == pytest.approx(expected, rel=1e-5)
    assert row["samples"] == len(y)


@pytest.fixture(scope="module")
def three_rounds(world, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rounds")
    client = WHOLE | {"learning_rate": 0.2}
    return folder, federated(world, folder, 3, client=client)


def test_evaluation_of_the_global_models_by_hand(world, three_rounds, tmp_path):
    folder, made = three_rounds
    models, tables = [one.model for one in made], [one.participants for one in made]
    rows = evaluated(world, tmp_path, folder / "recipe.yaml", "global_model", models, tables)
    assert [row["round"] for row in rows] == [1, 2, 3]
    for row, model in zip(rows, models, strict=True):
        answers = slow_logits(weights_in(model), pixels(world, "test"))
        assert_scores(row, world, answers, labels(world, "test"))
        assert (row["evaluated"], row["role"]) == ("global_model", "test")
        assert (row["participants"], row["client_std"]) == (PARTICIPANTS, None)
        assert (row["bytes_up"], row["bytes_down"]) == (2600, 2600)
    assert rows[0]["top1_accuracy"] < rows[2]["top1_accuracy"]


def test_evaluation_of_some_rounds_books_their_participants(world, three_rounds, tmp_path):
    folder, made = three_rounds
    recipe_file = folder / "recipe.yaml"
    (row,) = evaluated(
        world, tmp_path, recipe_file, "global_model", [made[1].model], [made[1].participants]
    )
    assert row["round"] == 2


def test_a_round_to_which_nobody_came_is_scored_without_participants(world, three_rounds, tmp_path):
    folder, made = three_rounds
    empty = tmp_path / "empty.parquet"
    save_table(empty, {name: [] for name in PARTICIPANTS_SCHEMA.names}, PARTICIPANTS_SCHEMA)
    models, tables = [made[0].model, made[0].model], [made[0].participants, empty]
    rows = evaluated(
        world, tmp_path, folder / "recipe.yaml", "global_model", models, tables, rounds=2, every=1
    )
    assert [row["round"] for row in rows] == [1, 2]
    traffic = ("participants", "bytes_up", "bytes_down")
    assert [[row[name] for name in traffic] for row in rows] == [
        [PARTICIPANTS, 2600, 2600],
        [0] * 3,
    ]
    assert rows[0]["top1_accuracy"] == rows[1]["top1_accuracy"]


def test_participants_of_all_groups_are_added_up(world, tmp_path):
    recipe_file = written_recipe(tmp_path, **DISTILLED)
    tables, models = [], []
    for group, participants in enumerate([(0, 1, 2), (3,)]):
        start = world.initial(LINEAR, group)
        updates = [
            trained(world, tmp_path, recipe_file, s, group=group, start=start) for s in participants
        ]
        made = averaged(world, tmp_path, recipe_file, updates, f"group_{group}", start)
        tables.append(made.participants)
        models.append(made.model)
    columns = load_table(tables[1]).to_pydict() | {"bytes_up": [5000], "bytes_down": [7]}
    save_table(tables[1], columns, PARTICIPANTS_SCHEMA)
    (row,) = evaluated(world, tmp_path, recipe_file, "global_model", models[:1], tables)
    assert (row["participants"], row["bytes_up"], row["bytes_down"]) == (4, 5000, 2600)


def test_validation_reads_its_samples_only(world, three_rounds, tmp_path):
    folder, made = three_rounds
    recipe_file, models, tables = folder / "recipe.yaml", [made[2].model], [made[2].participants]
    ask = (world, tmp_path, recipe_file, "global_model", models, tables, "validation")
    (row,) = evaluated(*ask)
    chosen = samples_of(world, "validation")
    answers = slow_logits(weights_in(models[0]), pixels(world)[chosen])
    assert_scores(row, world, answers, labels(world)[chosen])
    assert row["role"] == "validation"
    tensors, _ = load_tensors(world.train)
    others = samples_of(world, "train")
    assert sorted(chosen + others) == list(range(TRAIN))
    for altered, same in [(others, True), (chosen, False)]:
        images = tensors["images"].clone()
        images[altered] = 0
        path = tmp_path / f"altered_{same}.safetensors"
        save_tensors(path, tensors | {"images": images})
        assert (evaluated(*ask, data=path) == [row]) == same


def logits_of_rounds(world, folder, made, members):
    recipe_file = folder / "recipe.yaml"
    return [
        logits_of(
            world, folder, recipe_file, members, [one.model] if members == "aggregated" else
            one.updates, name=f"{members}_{round_}",
        )
        for round_, one in enumerate(made, start=1)
    ]  # fmt: skip


def test_temporal_ensemble_reaches_back_to_rounds_that_are_not_evaluated(
    world, three_rounds, tmp_path
):
    folder, made = three_rounds
    paths = logits_of_rounds(world, folder, made, "aggregated")
    tables = [made[2].participants]
    (row,) = evaluated(world, tmp_path, folder / "recipe.yaml", "aggregated_2", paths[1:], tables)
    x, y = pixels(world, "test"), labels(world, "test")
    answers = sum(slow_logits(weights_in(one.model), x) for one in made[1:]) / 2
    assert_scores(row, world, answers, y)
    assert row["round"] == 3


@pytest.mark.parametrize("name", ["clients", "clients_by_samples"])
def test_ensemble_of_clients_by_hand(world, three_rounds, tmp_path, name):
    folder, made = three_rounds
    paths = logits_of_rounds(world, folder, made, "clients")
    tables = [one.participants for one in made]
    rows = evaluated(world, tmp_path, folder / "recipe.yaml", name, paths, tables)
    x, y = pixels(world, "test"), labels(world, "test")
    for row, one in zip(rows, made, strict=True):
        total, mass = 0.0, 0
        for update in one.updates:
            share = load_tensors(update)[1]["samples"] if name == "clients_by_samples" else 1
            total = total + share * slow_logits(weights_in(update, "model/"), x)
            mass += share
        assert_scores(row, world, total / mass, y)
        votes = [slow_logits(weights_in(path, "model/"), x).argmax(1) for path in one.updates]
        apart = [np.mean(a != b) for a, b in combinations(votes, 2)]
        assert row["disagreement"] == pytest.approx(100 * np.mean(apart))
        alone = np.mean([100 * np.mean(vote == y) for vote in votes])
        assert row["ensemble_gain"] == pytest.approx(row["top1_accuracy"] - alone)


def test_round_of_which_nobody_is_left_is_named(world, three_rounds, tmp_path):
    _, one = with_dropped(world, tmp_path, ())
    recipe_file, two = with_dropped(world, tmp_path, range(PARTICIPANTS), round_=2)
    paths = [
        logits_of(world, tmp_path, recipe_file, "clients", made.updates, name=f"logits_{round_}")
        for round_, made in enumerate([one, two], start=1)
    ]
    tables = [one.participants, two.participants]
    with pytest.raises(FedstageError, match="clients, round 2: no member of the ensemble"):
        evaluated(world, tmp_path, recipe_file, "clients", paths, tables)


def test_evaluation_needs_labels(world, three_rounds, tmp_path):
    folder, made = three_rounds
    models, tables = [made[0].model], [made[0].participants]
    with pytest.raises(FedstageError, match=r"held_out\.safetensors: has no labels"):
        evaluated(
            world, tmp_path, folder / "recipe.yaml", "global_model", models, tables,
            data=world.held_out,
        )  # fmt: skip


# --- without federation -------------------------------------------------------------------------


def local_recipe(folder, **changes):
    shared = {k: v for k, v in SETTINGS.items() if k != "participants"}
    folder.mkdir(exist_ok=True)
    return written_local(folder / "local.yaml", shared | changes)


def written_local(path, settings):
    recipe(settings=json.dumps(settings), output=path)
    return path


def trained_alone(world, folder, recipe_file, client):
    output, who = folder / f"model_{client}.safetensors", "pooled"
    if client is not None:
        who = f"client_{client}"
    local_model(
        recipe=recipe_file, who=who, data=world.train, info=world.info,
        clients=world.clients, start=world.initial(LINEAR), output=output,
    )  # fmt: skip
    return output


def test_client_alone_trains_on_its_samples_only(world, tmp_path):
    recipe_file = local_recipe(tmp_path)
    for client in range(CLIENTS):
        x, y = own_data(world, client)
        output = trained_alone(world, tmp_path, recipe_file, client)
        assert close(weights_in(output), slow_training(weights_in(world.initial(LINEAR)), x, y))
        notes = load_tensors(output)[1]
        assert notes.pop("loss") > 0
        assert notes == {"client": client, "samples": len(x), "steps": 3}


def test_pooled_model_trains_on_all_training_samples(world, tmp_path):
    output = trained_alone(world, tmp_path, local_recipe(tmp_path, pooled=True), None)
    chosen = samples_of(world, "train")
    start = weights_in(world.initial(LINEAR))
    expected = slow_training(start, pixels(world)[chosen], labels(world)[chosen])
    assert close(weights_in(output), expected)
    notes = load_tensors(output)[1]
    assert (notes["client"], notes["samples"]) == ("pooled", len(chosen))


@pytest.mark.parametrize("client", [2, None])
def test_local_divergence_is_named(world, tmp_path, client):
    recipe_file = local_recipe(tmp_path, **TOO_FAST, pooled=client is None)
    who = "pooled" if client is None else f"client {client}"
    with pytest.raises(FedstageError, match=f"local model, {who}: .* finite at step 2; low"):
        trained_alone(world, tmp_path, recipe_file, client)


def locally_evaluated(world, folder, recipe_file, models, role="test", who="each_client"):
    output = folder / f"local-{role}.parquet"
    local_evaluation(
        recipe=recipe_file, rounds=20, role=role, who=who, models=models, info=world.info,
        data=world.test if role == "test" else world.train, clients=world.clients,
        histogram=world.histogram, output=output,
    )  # fmt: skip
    table = load_table(output)
    assert table.schema.remove_metadata() == METRICS_SCHEMA
    (row,) = table.to_pylist()
    return row


@pytest.mark.parametrize("role", ["test", "validation"])
def test_evaluation_of_each_client_by_hand(world, tmp_path, role):
    recipe_file = local_recipe(tmp_path, client=WHOLE | {"learning_rate": 0.2})
    models = [trained_alone(world, tmp_path, recipe_file, client) for client in range(CLIENTS)]
    row = locally_evaluated(world, tmp_path, recipe_file, models, role)
    part = "test" if role == "test" else "train"
    chosen = slice(None) if role == "test" else samples_of(world, role)
    x, y = pixels(world, part)[chosen], labels(world, part)[chosen]
    accuracies, losses, own, areas, balanced = [], [], [], [], []
    for client, model in enumerate(models):
        answers = slow_logits(weights_in(model), x)
        accuracy, loss, _, _ = slow_scores(world, answers, y)
        accuracies.append(accuracy)
        losses.append(loss)
        right, mix = answers.argmax(1) == y, labels(world)[samples_of(world, "train", client)]
        own.append(100 * np.mean([right[y == c].mean() for c in mix if (y == c).any()]))
        areas.append(100 * roc_auc_score(y, softmax(answers), multi_class="ovr", labels=range(10)))
        balanced.append(100 * np.mean([right[y == c].mean() for c in np.unique(y)]))
    assert len(set(accuracies)) > 1
    expected = {
        "balanced_accuracy": np.mean(balanced), "auc": np.mean(areas),
        "top1_accuracy": np.mean(accuracies), "loss": np.mean(losses),
        "client_std": statistics.stdev(accuracies), "own_mean": np.mean(own),
        "own_std": statistics.stdev(own),
    }  # fmt: skip
    assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-5)
    assert (row["round"], row["evaluated"], row["role"]) == (20, "each_client", role)
    assert (row["samples"], row["participants"]) == (len(y), CLIENTS)
    assert (row["bytes_up"], row["bytes_down"]) == (0, 0)


def with_clients_of_tests(world, folder):
    """Return the test samples with their clients, of which the last client has none."""
    arrays, _ = load_tensors(world.test)
    owners = torch.arange(len(arrays["labels"])) % CLIENTS - 1
    path = folder / "test.safetensors"
    save_tensors(path, arrays | {"clients": owners})
    return replace(world, test=path), owners.numpy()


def test_each_clients_model_is_scored_on_the_clients_own_test_samples(world, tmp_path):
    client = WHOLE | {"learning_rate": 0.2}
    models = [
        trained_alone(world, tmp_path, local_recipe(tmp_path, client=client), number)
        for number in range(CLIENTS)
    ]
    natural, owners = with_clients_of_tests(world, tmp_path)
    recipe_file = local_recipe(tmp_path, client=client, partition="natural")
    row = locally_evaluated(natural, tmp_path, recipe_file, models)
    x, y = pixels(world, "test"), labels(world, "test")
    own = [
        100
        * np.mean(
            slow_logits(weights_in(models[number]), x[owners == number]).argmax(1)
            == y[owners == number]
        )
        for number in range(CLIENTS - 1)
    ]
    assert row["own_test_mean"] == pytest.approx(np.mean(own))
    assert row["own_test_std"] == pytest.approx(statistics.stdev(own))
    assert (row["own_mean"], row["own_std"]) == (None, None)
    pooled = locally_evaluated(natural, tmp_path, recipe_file, models[:1], who="pooled")
    right = slow_logits(weights_in(models[0]), x).argmax(1) == y
    of_one = [100 * np.mean(right[owners == number]) for number in range(CLIENTS - 1)]
    assert pooled["own_test_mean"] == pytest.approx(np.mean(of_one))
