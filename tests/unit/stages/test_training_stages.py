"""The stages that train, average, distil and score, called in a chain on a few digits.

What they write is compared with softmax regression in float64 NumPy wherever numbers count.
"""

import json
import os
import statistics
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from tests.shared.stages import (
    aggregation,
    dataset,
    distillation,
    evaluation,
    initial_model,
    judged_distillation,
    live_distillation,
    local_evaluation,
    local_model,
    local_training,
    logits,
    participation,
    partition,
)

from fedstage.data.partitions import CLIENTS_SCHEMA
from fedstage.errors import FedstageError
from fedstage.randomness import torch_generator
from fedstage.results.metrics import METRICS_SCHEMA
from fedstage.settings.recipes import LocalRecipe, Recipe
from fedstage.stages.aggregation import PARTICIPANTS_SCHEMA
from fedstage.stages.recipe import recipe
from fedstage.storage.files import load_json
from fedstage.storage.tables import load_table, save_table
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.storage.yaml_files import read_recipe

CLIENTS, PARTICIPANTS, SEED, TRAIN = 5, 4, 3, 100
DATA = {"name": "digits", "test": 80, "held_out": 30, "server_validation": 40}
SPLIT = {"name": "dirichlet", "alpha": 1.0, "min_samples": 8}
LINEAR = {"name": "logistic_regression"}
CNN = {"name": "cnn_small", "width": 2, "hidden": 6, "norm": "batch"}
WHOLE = {"learning_rate": 0.02, "batch_size": 1000, "epochs": 3}  # every batch is all samples
FOCAL = {"name": "focal", "gamma": 1.5, "class_weights": [0.5, 3, 1, 1, 2, 0.1, 4, 1, 9, 1]}
FOCUSED = {"client": WHOLE | {"loss": FOCAL}}
TOO_FAST = {"client": WHOLE | {"learning_rate": 1e38}}
SETTINGS = {
    "data": DATA,
    "clients": CLIENTS,
    "partition": SPLIT,
    "validation": 0.2,
    "participants": PARTICIPANTS,
    "model": LINEAR,
    "client": WHOLE,
    "numerics": {"device": "cpu"},
    "seed": SEED,
}
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
    return table.to_pylist()


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


def slow_focal_gradient(weights, x, y):
    """Of the loss FOCAL: by a sample's logits it is a multiple of the cross entropy's."""
    p = softmax(slow_logits(weights, x))
    told, gamma = p[np.arange(len(x)), y], FOCAL["gamma"]
    scale = (1 - told) ** gamma - gamma * told * (1 - told) ** (gamma - 1) * np.log(told)
    scale *= np.array(FOCAL["class_weights"])[y]
    wrong = scale[:, None] * (p - np.eye(10)[y]) / len(x)
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


# --- recipe ---------------------------------------------------------------------------------------


def test_recipe_is_read_back_as_it_was(tmp_path):
    path = written_recipe(tmp_path, **DISTILLED)
    assert read_recipe(path, Recipe) == Recipe.model_validate(SETTINGS | DISTILLED)


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


def test_steps_are_those_of_the_focal_loss(world, tmp_path):
    recipe_file = written_recipe(tmp_path, **FOCUSED)
    start = weights_in(world.initial(LINEAR))
    for participant in range(PARTICIPANTS):
        own = own_data(world, client_of(world, 1, participant))
        update = trained(world, tmp_path, recipe_file, participant)
        expected = slow_training(start, *own, gradient_of=slow_focal_gradient)
        assert close(weights_in(update, "model/"), expected)
        assert not close(weights_in(update, "model/"), slow_training(start, *own), 1e-3)


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


@pytest.mark.parametrize("model", [LINEAR, CNN], ids=lambda model: model["name"])
def test_fedprox_without_mu_writes_the_bytes_of_fedavg(world, tmp_path, model):
    client = {"learning_rate": 0.1, "batch_size": 4, "epochs": 1, "momentum": 0.9}
    files = {}
    for name, local in [("a", "fedavg"), ("0", {"fedprox": {"mu": 0}}), ("1", {"fedprox": {}})]:
        recipe_file = written_recipe(tmp_path / name, client=client, model=model, local=local)
        start = world.initial(model)
        files[name] = trained(world, tmp_path / name, recipe_file, 0, start=start).read_bytes()
    assert files["0"] == files["a"]
    assert files["1"] != files["a"]


def test_fedprox_pulls_towards_the_model_of_the_round(world, tmp_path):
    recipe_file = written_recipe(tmp_path, local={"fedprox": {"mu": 2.0}})
    start = weights_in(world.initial(LINEAR))
    x, y = own_data(world, client_of(world, 1, 0))
    expected = start
    for _ in range(3):
        pull = [2.0 * (w - s) for w, s in zip(expected, start, strict=True)]
        expected = slow_training(expected, x, y, steps=1, correction=pull)
    output = trained(world, tmp_path, recipe_file, 0)
    assert close(weights_in(output, "model/"), expected)


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


def test_client_without_training_samples_is_named(world, tmp_path):
    columns = load_table(world.clients).to_pydict()
    client = client_of(world, 1, 0)
    columns["role"] = ["validation" if who == client else "train" for who in columns["client"]]
    changed = replace(world, clients=tmp_path / "clients.parquet")
    save_table(changed.clients, columns, CLIENTS_SCHEMA)
    message = rf"clients\.parquet: no sample of role 'train' for client {client}$"
    with pytest.raises(FedstageError, match=message):
        trained(changed, tmp_path, written_recipe(tmp_path), participant=0)


# --- aggregation --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["samples", "uniform"])
def test_two_rounds_of_fedavg_are_those_by_hand(world, tmp_path, kind):
    expected = weights_in(world.initial(LINEAR))
    rounds = federated(world, tmp_path, 2, aggregation={"weights": kind})
    for round_, made in enumerate(rounds, start=1):
        total, mass = [0.0, 0.0], 0
        for participant in range(PARTICIPANTS):
            x, y = own_data(world, client_of(world, round_, participant))
            share = len(x) if kind == "samples" else 1
            after = slow_training(expected, x, y)
            total = [t + share * w for t, w in zip(total, after, strict=True)]
            mass += share
        expected = [t / mass for t in total]
        assert close(weights_in(made.model), expected)


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


def test_order_of_the_update_files_does_not_matter(world, tmp_path):
    (made,) = federated(world, tmp_path, 1)
    again = averaged(world, tmp_path, tmp_path / "recipe.yaml", made.updates[::-1], name="again")
    assert again.model.read_bytes() == made.model.read_bytes()
    assert again.participants.read_bytes() == made.participants.read_bytes()


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


def test_two_rounds_of_scaffold_are_those_by_hand(world, tmp_path):
    x_t = weights_in(world.initial(LINEAR))
    zero = [np.zeros_like(w) for w in x_t]
    c, own = zero, dict.fromkeys(range(CLIENTS), zero)
    rounds = federated(world, tmp_path, 2, local="scaffold", aggregation={"weights": "uniform"})
    for round_, made in enumerate(rounds, start=1):
        ends, changes = [], []
        for participant in range(PARTICIPANTS):
            client = client_of(world, round_, participant)
            correction = [a - b for a, b in zip(c, own[client], strict=True)]
            end = slow_training(x_t, *own_data(world, client), correction=correction)
            pairs = zip(x_t, end, c, strict=True)
            changes.append([(a - b) / (3 * 0.02) - v for a, b, v in pairs])
            own[client] = [a + b for a, b in zip(own[client], changes[-1], strict=True)]
            ends.append(end)
        x_t = [np.mean(values, axis=0) for values in zip(*ends, strict=True)]
        moved = [np.sum(values, axis=0) / CLIENTS for values in zip(*changes, strict=True)]
        c = [a + b for a, b in zip(c, moved, strict=True)]
        assert close(weights_in(made.model), x_t, 1e-4)
        assert close(weights_in(made.state, "server/"), c, 1e-4)
        for client in {
            client_of(world, round_, participant) for participant in range(PARTICIPANTS)
        }:
            assert close(weights_in(made.state, f"client/{client}/"), own[client], 1e-4)


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


def test_all_dropped_in_the_first_round_leaves_an_empty_state(world, tmp_path):
    _, made = with_dropped(world, tmp_path, range(PARTICIPANTS), local="scaffold")
    assert load_tensors(made.state)[0] == {}


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


def test_logits_of_an_averaged_model_on_public_images(world, tmp_path):
    (made,) = federated(world, tmp_path, 1)
    recipe_file = tmp_path / "recipe.yaml"
    output = logits_of(world, tmp_path, recipe_file, "aggregated", [made.model], world.held_out)
    tensors, notes = load_tensors(output)
    samples = load_tensors(made.model)[1]["samples"]
    assert notes == {"round": 1, "group": 0, "samples": [samples], "members": "aggregated"}
    expected = slow_logits(weights_in(made.model), pixels(world, "held_out"))
    assert np.allclose(tensors["logits"].numpy(), expected[None], atol=1e-4)


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


@pytest.mark.parametrize("kind", ["gaussian_3", "dirichlet_3_0.5", "gaussian_3_as_released"])
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


def test_who_was_dropped_is_not_drawn_from(world, tmp_path):
    recipe_file, made = with_dropped(world, tmp_path, (0, 1, 3))
    ask = (world, tmp_path, recipe_file, "gaussian_2", made.updates)
    tensors, _ = load_tensors(logits_of(*ask, aggregated=made.model))
    expected = slow_logits(weights_in(made.model), pixels(world, "test"))
    assert np.allclose(tensors["logits"].numpy(), expected, atol=1e-4)


def test_members_that_nobody_knows_are_named(world, tmp_path):
    (made,) = federated(world, tmp_path, 1)
    with pytest.raises(FedstageError, match="members = 'laplace_3': use aggregated, clients"):
        logits_of(world, tmp_path, tmp_path / "recipe.yaml", "laplace_3", made.updates)


def test_member_that_does_not_fit_is_named(world, tmp_path):
    (made,) = federated(world, tmp_path, 1)
    tensors, notes = load_tensors(made.updates[2])
    save_tensors(made.updates[2], tensors | {"model/linear.bias": torch.zeros(3)}, notes)
    with pytest.raises(FedstageError, match=rf"{made.updates[2].name}: does not fit the model"):
        logits_of(world, tmp_path, tmp_path / "recipe.yaml", "clients", made.updates)


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
    stage = live_distillation if "members" in changes else distillation
    stage = judged_distillation if "judged" in changes else stage
    stage(**(inputs | changes), output=output)
    return output


def test_distillation_is_that_by_hand(world, tmp_path):
    made = two_groups(world, tmp_path)
    x = pixels(world, "held_out")
    teacher = sum(slow_logits(weights_in(model), x) for model in made.models) / 2
    student = weights_in(made.models[0])
    for _ in range(4):
        answers = slow_logits(student, x)
        # tau^2 KL has the gradient tau (sigma_tau(student) - sigma_tau(teacher)) / b; tau = 4
        wrong = 4.0 * (softmax(answers, 4.0) - softmax(teacher, 4.0)) / len(x)
        student = [student[0] - 0.01 * wrong.T @ x, student[1] - 0.01 * wrong.sum(0)]
    ours = distilled(world, tmp_path, made)
    assert close(weights_in(ours), student)
    assert not close(weights_in(made.models[0]), student, 1e-3)
    notes, before = load_tensors(ours)[1], load_tensors(made.models[0])[1]
    assert notes.pop("loss") > 0
    assert notes == before == {"round": 1, "group": 0, "samples": before["samples"]}


def test_a_student_learns_labels_and_what_it_was_by_hand(world, tmp_path):
    server = DISTILLED["server"] | {"labels": 0.5, "buffer": {"weight": 0.3}}
    made = two_groups(world, tmp_path, server=server, core={}, public="core")
    core, settings = tmp_path / "core.safetensors", load_tensors(world.test)[0]
    save_tensors(core, settings)
    public = [
        logits_of(world, tmp_path, made.recipe, "aggregated", [model], core, name=f"core_{number}")
        for number, model in enumerate(made.models)
    ]
    x, y = pixels(world, "test"), np.eye(10)[labels(world, "test")]
    teacher = sum(slow_logits(weights_in(model), x) for model in made.models) / 2
    student = weights_in(made.models[0])
    before = softmax(slow_logits(student, x), 4.0)
    for _ in range(4):
        answers = slow_logits(student, x)
        soft = softmax(answers, 4.0)
        wrong = 4.0 * (soft - softmax(teacher, 4.0)) + 0.3 * 4.0 * (soft - before)
        wrong = (wrong + 0.5 * (softmax(answers) - y)) / len(x)
        student = [student[0] - 0.01 * wrong.T @ x, student[1] - 0.01 * wrong.sum(0)]
    ours = distilled(world, tmp_path, made, logits=public, public=core)
    assert close(weights_in(ours), student)


@pytest.mark.parametrize(("after", "same"), [(1, True), (0, False)])
def test_the_first_rounds_have_no_buffer(world, tmp_path, after, same):
    plain = distilled(world, tmp_path, two_groups(world, tmp_path))
    server = DISTILLED["server"] | {"buffer": {"after": after}}
    other = tmp_path / "buffered"
    found = distilled(world, other, two_groups(world, other, server=server))
    assert (plain.read_bytes() == found.read_bytes()) == same


def test_a_student_of_another_start_has_the_notes_of_its_own_round(world, tmp_path):
    trainer = {"designated": {"starts_from": "previous"}}
    made = two_groups(world, tmp_path, **{"global": trainer})
    before = distilled(world, tmp_path, made, start=world.initial(LINEAR))
    assert load_tensors(before)[1].keys() == {"round", "group", "loss"}


def test_order_of_the_teachers_does_not_matter(world, tmp_path):
    made = two_groups(world, tmp_path)
    first = distilled(world, tmp_path, made).read_bytes()
    assert distilled(world, tmp_path, made, logits=made.public[::-1]).read_bytes() == first


def test_group_and_round_decide_the_batches_of_distillation(world, tmp_path):
    small = DISTILLED["server"] | {"batch_size": 5}
    made = two_groups(world, tmp_path, server=small)
    first = load_tensors(distilled(world, tmp_path, made))[0]
    for change in ({"round": 2}, {"group": 1}):
        other = load_tensors(distilled(world, tmp_path, made, **change))[0]
        assert not torch.equal(other["linear.weight"], first["linear.weight"])


def test_public_images_of_another_shape_are_named(world, tmp_path):
    made = two_groups(world, tmp_path)
    public = tmp_path / "public.safetensors"
    save_tensors(public, {"images": torch.zeros(30, 3, 8, 8, dtype=torch.uint8)})
    message = r"public\.safetensors: images of shape \[3, 8, 8\]: must be \[1, 8, 8\]"
    with pytest.raises(FedstageError, match=message):
        distilled(world, tmp_path, made, public=public)
    with pytest.raises(FedstageError, match=message):
        logits_of(world, tmp_path, made.recipe, "aggregated", made.models[:1], public, name="other")


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


def test_averaged_students_are_the_mean_of_shorter_ones(world, tmp_path):
    made = two_groups(world, tmp_path, server=SERVER | {"swa": {"start": 1, "every": 3}})
    ours = weights_in(distilled(world, tmp_path, made))
    passed = []
    for steps in (4, 7):
        folder = tmp_path / str(steps)
        shorter = two_groups(world, folder, server=SERVER | {"steps": steps})
        passed.append(weights_in(distilled(world, folder, shorter)))
    assert close(ours, [(a + b) / 2 for a, b in zip(*passed, strict=True)], 1e-6)


def judged_world(world, folder, **changes):
    """Round 1 of one group whose participants 1 and 2 answer class 0 whatever they see."""
    server = SERVER | {"drop_worst": "as_published"}
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


def test_the_worst_neither_teach_nor_are_averaged(world, tmp_path):
    zeros = (labels(world, "server_validation") == 0).mean()
    assert zeros <= 0.1  # so that answering 0 is no better than chance
    made, judging = judged_world(world, tmp_path)
    output = distilled(world, tmp_path, made, **judging)
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
    recipe_file = written_recipe(folder, ensemble="clients", server=SERVER, **{"global": "basic"})
    two = [judging["updates"][0], judging["updates"][3]]
    public = logits_of(world, folder, recipe_file, "clients", two, world.held_out)
    plain = distilled(world, folder, TwoGroups(recipe_file, [start], [public]))
    assert close(weights_in(output), weights_in(plain), 1e-5)
    everybody = TwoGroups(recipe_file, made.models, made.public)
    assert not close(weights_in(output), weights_in(distilled(world, folder, everybody)), 1e-2)


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


@pytest.mark.parametrize("checkpoints", [1, 2, 3])
def test_temporal_ensemble_averages_the_last_rounds(world, three_rounds, tmp_path, checkpoints):
    folder, made = three_rounds
    paths = logits_of_rounds(world, folder, made, "aggregated")
    tables, name = [one.participants for one in made], f"aggregated_{checkpoints}"
    rows = evaluated(world, tmp_path, folder / "recipe.yaml", name, paths[::-1], tables)
    x, y = pixels(world, "test"), labels(world, "test")
    for round_, row in enumerate(rows, start=1):
        window = [made[r - 1] for r in range(round_ - checkpoints + 1, round_ + 1) if r >= 1]
        answers = sum(slow_logits(weights_in(one.model), x) for one in window) / len(window)
        assert_scores(row, world, answers, y)
        assert (row["round"], row["evaluated"]) == (round_, name)


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


@pytest.mark.parametrize("average", ["logits", "probabilities"])
def test_bayesian_ensemble_by_hand(world, three_rounds, tmp_path, average):
    folder, made = three_rounds
    recipe_file = folder / "recipe.yaml"
    kinds = ("aggregated", "clients", "gaussian_2")
    tables, answers = [one.participants for one in made], []
    paths = []
    for round_, one in enumerate(made, start=1):
        said = []
        for kind in kinds:
            models = [one.model] if kind == "aggregated" else one.updates
            more = {"aggregated": one.model} if kind == "gaussian_2" else {}
            name = f"{average}_{kind}_{round_}"
            paths.append(logits_of(world, tmp_path, recipe_file, kind, models, name=name, **more))
            said.append(load_tensors(paths[-1])[0]["logits"].double().numpy())
        said = np.concatenate(said)
        assert len(said) == 1 + PARTICIPANTS + 2
        every = np.stack([softmax(member) for member in said])
        answers.append(said.mean(0) if average == "logits" else np.log(every.mean(0)))
    name = "bayesian_gaussian_2" + ("_probabilities" if average == "probabilities" else "")
    rows = evaluated(world, tmp_path, recipe_file, name, paths[::-1], tables)
    for row, expected in zip(rows, answers, strict=True):
        assert_scores(row, world, expected, labels(world, "test"))
        assert row["evaluated"] == name


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


def test_evaluation_without_samples_is_refused(world, three_rounds, tmp_path):
    folder, made = three_rounds
    columns = load_table(world.clients).to_pydict()
    columns["role"] = ["train"] * TRAIN  # as a recipe with validation = 0 has it
    save_table(tmp_path / "clients.parquet", columns, CLIENTS_SCHEMA)
    message = r"clients\.parquet: no sample of role 'validation' for any client; set validation"
    with pytest.raises(FedstageError, match=message):
        evaluated(
            world, tmp_path, folder / "recipe.yaml", "global_model", [made[0].model],
            [made[0].participants], "validation", clients=tmp_path / "clients.parquet",
        )  # fmt: skip


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


@pytest.mark.parametrize("client", [1, None])
def test_models_without_federation_train_on_the_focal_loss(world, tmp_path, client):
    output = trained_alone(
        world, tmp_path, local_recipe(tmp_path, pooled=client is None, **FOCUSED), client
    )
    start = weights_in(world.initial(LINEAR))
    expected = slow_training(start, *own_data(world, client), gradient_of=slow_focal_gradient)
    assert close(weights_in(output), expected)


@pytest.mark.parametrize("client", [1, None])
def test_class_weights_without_federation_are_of_the_datas_classes(world, tmp_path, client):
    few = {"client": WHOLE | {"loss": {"name": "focal", "class_weights": [1.0] * 9}}}
    recipe_file = local_recipe(tmp_path, pooled=client is None, **few)
    with pytest.raises(FedstageError, match=r"focal: 9 class_weights: .* the data has 10"):
        trained_alone(world, tmp_path, recipe_file, client)


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


def test_evaluation_of_the_pooled_model_by_hand(world, tmp_path):
    recipe_file = local_recipe(tmp_path, pooled=True)
    assert read_recipe(recipe_file, LocalRecipe).pooled
    model = trained_alone(world, tmp_path, recipe_file, None)
    row = locally_evaluated(world, tmp_path, recipe_file, [model], who="pooled")
    answers = slow_logits(weights_in(model), pixels(world, "test"))
    assert_scores(row, world, answers, labels(world, "test"))
    assert (row["evaluated"], row["client_std"], row["participants"]) == ("pooled", None, CLIENTS)


def test_evaluation_of_one_client_by_hand(world, tmp_path):
    """The client has an architecture of its own, and is not the first."""
    recipe_file = local_recipe(tmp_path, architectures=[CNN, LINEAR])
    model = trained_alone(world, tmp_path, recipe_file, 1)
    row = locally_evaluated(world, tmp_path, recipe_file, [model], who="client_1")
    answers = slow_logits(weights_in(model), pixels(world, "test"))
    assert_scores(row, world, answers, labels(world, "test"))
    assert (row["evaluated"], row["client_std"], row["participants"]) == ("client_1", None, CLIENTS)


# --- the whole chain ----------------------------------------------------------------------------


def chain(world, folder):
    """Run two rounds of two groups with everything on, and score them; return all files."""
    folder.mkdir()
    client = {"learning_rate": 0.05, "batch_size": 5, "epochs": 1, "augmentation": "crop_flip"}
    server = {"learning_rate": 0.05, "batch_size": 8, "steps": 3, "momentum": 0.9}
    settings = DISTILLED | {"client": client, "server": server, "model": CNN, "local": "scaffold"}
    recipe_file = written_recipe(folder, **settings)
    starts, states = [world.initial(CNN, group) for group in (0, 1)], [None, None]
    public, scored, tables, distilled_models = [], [], [], []
    for round_ in (1, 2):
        models = []
        for group, participants in enumerate([(0, 1), (2, 3)]):
            options = {"start": starts[group], "state": states[group]}
            updates = [
                trained(world, folder, recipe_file, participant, round_, group, **options)
                for participant in participants
            ]
            name = f"round_{round_}_group_{group}"
            made = averaged(world, folder, recipe_file, updates, name, keep=True, **options)
            models.append(made.model)
            tables.append(made.participants)
            starts[group], states[group] = made.model, made.state
            ask = (world, folder, recipe_file, "clients", updates)
            scored.append(logits_of(*ask, name=f"{name}_clients"))
            ask = (world, folder, recipe_file, "aggregated", [made.model], world.held_out)
            public.append(logits_of(*ask, name=f"{name}_public"))
        output = folder / f"round_{round_}_distilled.safetensors"
        distillation(
            recipe=recipe_file, round=round_, group=0, start=models[0], logits=public[-4:],
            public=world.held_out, info=world.info, output=output,
        )  # fmt: skip
        starts[0] = output
        distilled_models.append(output)
    evaluated(world, folder, recipe_file, "global_model", distilled_models, tables)
    evaluated(world, folder, recipe_file, "clients", scored, tables)
    alone = local_recipe(folder, client=client)
    local_models = [trained_alone(world, folder, alone, client) for client in range(CLIENTS)]
    locally_evaluated(world, folder, alone, local_models)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_same_calls_write_the_same_bytes(world, tmp_path):
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002 - it must not matter
    first = chain(world, tmp_path / "a")
    torch.manual_seed(2)
    np.random.seed(2)  # noqa: NPY002
    torch.rand(7)
    second = chain(world, tmp_path / "b")
    assert len(first) > 30
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []


# --- damaged inputs -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def calls(world, tmp_path_factory):
    """Return a valid call of every stage: the function, and its inputs."""
    folder = tmp_path_factory.mktemp("calls")
    made = two_groups(world, folder)
    scored = logits_of(world, folder, made.recipe, "aggregated", [made.models[0]], name="scored")
    (scaffold,) = federated(world, folder / "scaffold", 1, local="scaffold")
    alone = local_recipe(folder)
    local_models = [trained_alone(world, folder, alone, client) for client in range(CLIENTS)]
    judged, judging = judged_world(world, folder / "judged")
    common = {"info": world.info, "clients": world.clients}
    labelled = common | {"data": world.test, "histogram": world.histogram}
    stateful = {"recipe": folder / "scaffold" / "recipe.yaml", "state": scaffold.state}
    models = {"models": [made.models[0]], "participants": [folder / "group_0.parquet"]}
    return {
        "local_training": (
            local_training,
            {"round": 1, "group": 0, "participants": [0], "participation": world.participation}
            | common | stateful | {"state": [scaffold.state]}
            | {"data": world.train, "start": world.initial(LINEAR)},
        ),
        "aggregation": (
            aggregation,
            {"info": world.info, "start": world.initial(LINEAR), "updates": scaffold.updates}
            | stateful,
        ),
        "logits": (
            logits,
            {"members": "clients", "models": scaffold.updates, "data": world.train}
            | common | {"recipe": made.recipe},
        ),
        "distillation": (
            distillation,
            {"recipe": made.recipe, "round": 1, "group": 0, "start": made.models[0]}
            | {"logits": made.public, "public": world.held_out, "info": world.info},
        ),
        "judged": (
            judged_distillation,
            {"recipe": judged.recipe, "round": 1, "group": 0, "start": judged.models[0]}
            | {"logits": judged.public, "public": world.held_out, "info": world.info} | judging,
        ),
        "drawn": (
            logits,
            {"members": "gaussian_2_as_released", "models": scaffold.updates, "data": world.train}
            | {"aggregated": scaffold.model, "start": world.initial(LINEAR), "info": world.info}
            | {"recipe": made.recipe},
        ),
        "evaluation": (
            evaluation,
            {"recipe": made.recipe, "evaluated": "global_model", "role": "validation", "rounds": 1}
            | {"every": 1}
            | labelled | models | {"data": world.train},
        ),
        "ensemble": (
            evaluation,
            {"recipe": made.recipe, "evaluated": "aggregated_1", "role": "test", "rounds": 1}
            | {"every": 1}
            | labelled | models | {"models": [scored]},
        ),
        "local_model": (
            local_model,
            {"recipe": alone, "who": "client_0", "data": world.train,
            "start": world.initial(LINEAR)}
            | common,
        ),
        "local_evaluation": (
            local_evaluation,
            {"recipe": alone, "rounds": 1, "role": "validation", "who": "each_client"}
            | {"models": local_models} | labelled | {"data": world.train},
        ),
    }  # fmt: skip


INPUTS = {
    "local_training": "recipe data info clients participation start state",
    "aggregation": "recipe info start state updates",
    "logits": "recipe models data info clients",
    "distillation": "recipe start logits public info",
    "judged": "judged updates server_validation",
    "drawn": "models aggregated start",
    "evaluation": "recipe models data info clients histogram participants",
    "ensemble": "models",
    "local_model": "recipe data info clients start",
    "local_evaluation": "recipe models data info clients histogram",
}
PAIRS = [(stage, option) for stage, options in INPUTS.items() for option in options.split()]


def outputs(stage, folder):
    if stage == "local_training":
        return {"outputs": [folder / "output"]}
    made = {"output": folder / "output"}
    if stage == "aggregation":
        made |= {"participants": folder / "participants", "new_state": folder / "state"}
    return made


@pytest.mark.parametrize(("stage", "option"), PAIRS)
def test_truncated_input_is_named_and_nothing_written(calls, tmp_path, stage, option):
    function, inputs = calls[stage]
    original = inputs[option]
    last = original[-1] if isinstance(original, list) else original
    broken = tmp_path / f"broken{last.suffix}"
    broken.write_bytes(last.read_bytes()[: last.stat().st_size // 2])
    changed = [*original[:-1], broken] if isinstance(original, list) else broken
    with pytest.raises(FedstageError, match=broken.name):
        function(**(inputs | {option: changed}), **outputs(stage, tmp_path))
    assert list(tmp_path.iterdir()) == [broken]


@pytest.mark.parametrize(("stage", "option"), PAIRS)
def test_missing_input_is_named(calls, tmp_path, stage, option):
    function, inputs = calls[stage]
    gone = tmp_path / "gone.file"
    changed = [*inputs[option][:-1], gone] if isinstance(inputs[option], list) else gone
    with pytest.raises(FedstageError, match=r"gone\.file"):
        function(**(inputs | {option: changed}), **outputs(stage, tmp_path))


def test_unharmed_calls_succeed(calls, tmp_path):
    for stage, (function, inputs) in calls.items():
        function(**inputs, **outputs(stage, tmp_path / stage))
        assert (tmp_path / stage / "output").is_file()
