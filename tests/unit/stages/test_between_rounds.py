"""What goes from round to round beside the average: servers' steps, statistics, round state."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from tests.shared.settings import federated
from tests.shared.stages import aggregation, local_training, recipe

from fedstage.algorithm.aggregation.averages import average_weights
from fedstage.data.participation import SCHEMA as PLAN_SCHEMA
from fedstage.data.partitions import CLIENTS_SCHEMA
from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.models import CnnSmall
from fedstage.storage.files import save_json
from fedstage.storage.tables import load_table, save_table
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.training.batch_norm import re_estimate

CLIENTS, PER_CLIENT = 4, 10
INFO = {"shape": [1, 8, 8], "classes": 3, "mean": [0.5], "std": [0.25]}
SETTINGS = federated(
    data={"digits": {"held_out": 5}},
    clients=CLIENTS,
    participants=3,
    model={"cnn_small": {"width": 2, "hidden": 4, "norm": "batch"}},
    client={"learning_rate": 0.1, "batch_size": 5, "epochs": 1},
    aggregation={"weights": "uniform"},
    on_divergence="drop",
    numerics={"device": "cpu"},
)
STEPS = 2
#: By round the clients of the participants 0, 1 and 2.
PLAN = {1: (0, 1, 2), 2: (2, 3, 0)}


def pictures(number, key):
    generator = torch_generator(0, key)
    return torch.randint(0, 256, (number, 1, 8, 8), generator=generator, dtype=torch.uint8)


def network(group=0):
    model = build(CnnSmall(name="cnn_small", width=2, hidden=4, norm="batch"), (1, 8, 8), 3)
    initialise(model, torch_generator(group, "weights"))
    return model


@dataclass(frozen=True)
class World:
    """A folder with the files that rounds start from."""

    folder: Path

    def path(self, name):
        return self.folder / name

    def write_recipe(self, **changes):
        chosen = dict(SETTINGS)
        for key, value in changes.items():
            merged = isinstance(value, dict) and key in ("aggregation", "client")
            chosen[key] = chosen[key] | value if merged else value
        recipe(settings=json.dumps(chosen), output=self.path("recipe.yaml"))

    def train(self, participant, round_=1, start="initial.safetensors", states=(), group=0):
        output = self.path(f"{group}_{round_}_{participant}.safetensors")
        local_training(
            recipe=self.path("recipe.yaml"), round=round_, group=group, participants=[participant],
            data=self.path("train.safetensors"), info=self.path("info.json"),
            clients=self.path("clients.parquet"), participation=self.path("plan.parquet"),
            start=self.path(start), state=[self.path(name) for name in states], outputs=[output],
        )  # fmt: skip
        return output

    def table(self, name="next"):
        return load_table(self.path(f"{name}.parquet")).to_pydict()

    def second_round(self):
        """Go on from `next`; return the updates, the model and the state."""
        before = ("next.safetensors", "next_state.safetensors")
        updates = [self.train(participant, 2, before[0], before[1:]) for participant in range(3)]
        return updates, *self.aggregate(updates, *before, name="later")

    def aggregate(self, updates, start="initial.safetensors", state=None, public=None, name="next"):
        aggregation(
            recipe=self.path("recipe.yaml"), info=self.path("info.json"), start=self.path(start),
            updates=updates, state=state and self.path(state), public=public,
            output=self.path(f"{name}.safetensors"), participants=self.path(f"{name}.parquet"),
            new_state=self.path(f"{name}_state.safetensors"),
        )  # fmt: skip
        model, _ = load_tensors(self.path(f"{name}.safetensors"))
        return model, load_tensors(self.path(f"{name}_state.safetensors"))[0]


@pytest.fixture
def world(tmp_path):
    torch.set_num_threads(1)
    samples = CLIENTS * PER_CLIENT
    labels = torch.randint(0, 3, (samples,), generator=torch_generator(0, "labels"))
    images = {"images": pictures(samples, "train"), "labels": labels}
    save_tensors(tmp_path / "train.safetensors", images)
    save_tensors(tmp_path / "public.safetensors", {"images": pictures(30, "public")})
    save_tensors(tmp_path / "initial.safetensors", network().state_dict())
    save_json(tmp_path / "info.json", INFO)
    owners = [number // PER_CLIENT for number in range(samples)]
    rows = {"client": owners, "sample": range(samples), "role": ["train"] * samples}
    save_table(tmp_path / "clients.parquet", rows, CLIENTS_SCHEMA)
    plan = [
        (t, participant, who, t - 1)
        for t, row in PLAN.items()
        for participant, who in enumerate(row)
    ]
    columns = dict(zip(PLAN_SCHEMA.names, zip(*plan, strict=True), strict=True))
    save_table(tmp_path / "plan.parquet", columns, PLAN_SCHEMA)
    return World(tmp_path)


def model_in(update):
    tensors, _ = load_tensors(update)
    prefix = "model/"
    return {
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }


PARAMETERS = [name for name, _ in network().named_parameters()]
BUFFERS = [name for name, _ in network().named_buffers()]


def equal(one, other, names):
    return all(torch.equal(one[name], other[name]) for name in names)


# --- the server's step ----------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [1.0, 0.25, 2.0])
def test_the_server_goes_its_rate_towards_the_average(world, rate):
    world.write_recipe(aggregation={"learning_rate": rate})
    updates = [world.train(participant) for participant in range(3)]
    model, _ = world.aggregate(updates)
    start, sent = network().state_dict(), [model_in(update) for update in updates]
    for name in PARAMETERS:
        mean = torch.stack([weights[name].double() for weights in sent]).mean(0)
        expected = start[name].double() + rate * (mean - start[name].double())
        assert torch.allclose(model[name].double(), expected, rtol=1e-5, atol=1e-7), name
    average = average_weights(sent, [1.0] * 3)
    assert equal(model, average, BUFFERS), "a variance that is moved too far may become negative"
    assert equal(model, average, PARAMETERS) == (rate == 1.0)


def mean_of(updates, name):
    return torch.stack([model_in(update)[name].double() for update in updates]).mean(0)


def test_participants_train_alike_whatever_the_server_remembers(world):
    world.write_recipe(aggregation={"server_optimizer": "yogi"})
    world.aggregate([world.train(participant) for participant in range(3)])
    with_state = world.train(0, 2, "next.safetensors", ["next_state.safetensors"]).read_bytes()
    assert world.train(0, 2, "next.safetensors").read_bytes() == with_state


# --- compression ----------------------------------------------------------------------------------

STC = {"sparsity": 0.75, "bits": 16}


def kept(value):
    return max(1, round(0.25 * value.numel()))


def residuals(update):
    tensors, _ = load_tensors(update)
    return {n.removeprefix("residual/"): v for n, v in tensors.items() if n.startswith("residual/")}


def test_what_a_client_kept_goes_into_its_next_change(world):
    world.write_recipe(compression={"stc": STC})
    first = [world.train(participant) for participant in range(3)]
    _, state = world.aggregate(first)
    for client, update in zip(PLAN[1], first, strict=True):
        left = residuals(update)
        assert all(torch.equal(state[f"residual/{client}/{name}"], left[name]) for name in left)
    second, _, after = world.second_round()
    for client, update in zip(PLAN[2], second, strict=True):
        left = residuals(update)
        assert all(torch.equal(after[f"residual/{client}/{name}"], left[name]) for name in left)
    absent = [name for name in state if name.startswith("residual/1/")]
    assert len(absent) == len(PARAMETERS)
    assert equal(after, state, absent)
    # Client 2, participant 0: what it trains is the same with and without what it kept.
    begun = load_tensors(world.path("next.safetensors"))[0]
    with_it = due(second[0], begun)
    without = due(world.train(0, 2, "next.safetensors"), begun)
    for name in PARAMETERS:
        expected = without[name] + state[f"residual/2/{name}"]
        assert torch.allclose(with_it[name], expected, atol=1e-6), name


def due(update, begun):
    """What a client had to send: what it sent and what it left out."""
    sent, left = model_in(update), residuals(update)
    return {name: sent[name] - begun[name] + left[name] for name in PARAMETERS}


def test_the_server_sends_the_large_part_of_its_change_and_keeps_the_rest(world):
    world.write_recipe(compression={"stc": STC})
    updates = [world.train(participant) for participant in range(3)]
    world.write_recipe()
    plain, _ = world.aggregate(updates)
    world.write_recipe(compression={"stc": STC})
    model, state = world.aggregate(updates)
    start = network().state_dict()
    for name in PARAMETERS:
        change, left = model[name] - start[name], state[f"residual/server/{name}"]
        assert int(change.count_nonzero()) <= kept(change), name
        assert torch.allclose(change + left, plain[name] - start[name], atol=1e-6), name
    assert equal(model, plain, BUFFERS)
    second, later, after = world.second_round()
    for name in PARAMETERS:
        due = mean_of(second, name) - model[name] + state[f"residual/server/{name}"]
        change = (later[name] - model[name]).double()
        assert int(change.count_nonzero()) <= kept(change), name
        assert torch.allclose(change + after[f"residual/server/{name}"], due, atol=1e-6), name


def test_bytes_are_those_after_compression(world):
    world.write_recipe(compression={"stc": STC})
    world.aggregate([world.train(participant) for participant in range(3)])
    world.second_round()
    start = network().state_dict()
    entries = [start[name].numel() for name in PARAMETERS]
    dense = 4 * sum(entries)
    counts = [max(1, round(0.25 * n)) for n in entries]
    sparse = sum(
        -(-(k * 16 + min(n, k * (n - 1).bit_length())) // 8)
        for k, n in zip(counts, entries, strict=True)
    )
    buffers = sum(start[name].nbytes for name in BUFFERS)
    assert sparse < dense / 4
    first, second = world.table(), world.table("later")
    assert first["bytes_up"] == second["bytes_up"] == [sparse + buffers] * 3
    assert first["bytes_down"] == [dense + buffers] * 3
    # Clients 2 and 0 have the model of the round before; client 3 has none yet.
    assert second["client"] == [2, 3, 0]
    assert second["bytes_down"] == [sparse + buffers, dense + buffers, sparse + buffers]


def test_who_was_away_is_sent_all_changes_since_or_the_whole_model(world):
    world.write_recipe(compression={"stc": STC})
    _, state = world.aggregate([world.train(participant) for participant in range(3)])
    away = {f"received/{client}": torch.tensor(2 - rounds) for client, rounds in [(2, 2), (3, 400)]}
    save_tensors(world.path("next_state.safetensors"), state | away, {"round": 1, "group": 0})
    world.second_round()
    down, up = world.table("later")["bytes_down"], world.table("later")["bytes_up"]
    buffers = sum(network().state_dict()[name].nbytes for name in BUFFERS)
    dense = 4 * sum(network().state_dict()[name].numel() for name in PARAMETERS)
    assert down == [2 * (up[0] - buffers) + buffers, dense + buffers, up[0]]


def test_a_dropped_client_keeps_what_it_left_out_and_has_heard_the_model(world):
    world.write_recipe(compression={"stc": STC})
    model, state = world.aggregate([world.train(participant) for participant in range(3)])
    world.write_recipe(compression={"stc": STC}, client={"learning_rate": 1e38})
    updates, later, after = world.second_round()
    assert all(load_tensors(update)[0] == {} for update in updates)
    assert world.table("later")["bytes_up"] == [0, 0, 0]
    assert equal(later, model, PARAMETERS)
    kept_before = [name for name in state if name.startswith("residual/")]
    assert equal(after, state, kept_before)
    received = {name: int(value) for name, value in after.items() if name.startswith("received/")}
    assert received == {"received/0": 2, "received/1": 1, "received/2": 2, "received/3": 2}


# --- running statistics ---------------------------------------------------------------------------


def test_local_statistics_stay_with_client_and_server(world):
    world.write_recipe(aggregation={"batch_norm": "local"})
    updates = [world.train(participant) for participant in range(3)]
    model, state = world.aggregate(updates)
    sent = [model_in(update) for update in updates]
    assert equal(model, average_weights(sent, [1.0] * 3), PARAMETERS)
    assert equal(model, network().state_dict(), BUFFERS)
    expected = {
        f"personal/{client}/{name}": weights[name]
        for client, weights in zip(PLAN[1], sent, strict=True)
        for name in BUFFERS
    }
    assert state.keys() == expected.keys()
    assert equal(state, expected, expected)
    second = [
        world.train(participant, 2, "next.safetensors", ["next_state.safetensors"])
        for participant in (0, 1)
    ]
    _, later = world.aggregate(second, "next.safetensors", "next_state.safetensors", name="later")
    for client, changed in {0: False, 1: False, 2: True, 3: True}.items():
        name = f"personal/{client}/norm1.running_mean"
        assert (name not in state or not torch.equal(state[name], later[name])) == changed


def test_a_client_goes_on_from_its_own_statistics(world):
    """Running statistics r become (1 - 0.1) r + 0.1 (batch) a step: linear in what they were."""
    world.write_recipe(aggregation={"batch_norm": "local"})
    client = PLAN[2][0]
    known = {f"personal/{client}/{n}": v.clone() for n, v in network().state_dict().items()}
    known = {name: value for name, value in known.items() if name.split("/")[2] in BUFFERS}
    save_tensors(world.path("known"), known, {"group": 0})
    moved = {n: v + 5.0 if v.dtype.is_floating_point else v + 40 for n, v in known.items()}
    save_tensors(world.path("moved"), moved, {"group": 0})
    without = model_in(world.train(0, 2))
    one = model_in(world.train(0, 2, states=["known"]))
    other = model_in(world.train(0, 2, states=["moved"]))
    assert equal(one, without, [*PARAMETERS, *BUFFERS]), "the start's, where it has none"
    assert equal(one, other, PARAMETERS), "training itself uses the statistics of the batch"
    for name in BUFFERS:
        step = 40 if "num_batches" in name else 5.0 * 0.9**STEPS
        assert torch.allclose((other[name] - one[name]).double(), torch.tensor(step).double())


def test_statistics_are_estimated_on_public_images_for_the_averaged_weights(world):
    world.write_recipe(aggregation={"batch_norm": "re_estimate", "learning_rate": 0.5})
    updates = [world.train(participant) for participant in range(3)]
    public = world.path("public.safetensors")
    model, state = world.aggregate(updates, public=public)
    world.write_recipe(aggregation={"learning_rate": 0.5})
    average, _ = world.aggregate(updates, name="average")
    assert equal(model, average, PARAMETERS)
    by_hand = network()
    by_hand.load_state_dict(average)
    re_estimate(by_hand, pictures(30, "public"), INFO)
    assert equal(model, by_hand.state_dict(), BUFFERS)
    assert not equal(model, average, BUFFERS)
    assert state == {}
