"""FedNova: its gradient masses, its rounds in float64 from the gradients, and what it is for."""

import json

import numpy as np
import pytest
import torch
from tests.shared.stages import aggregation, local_training

from fedstage.algorithm.aggregation.averages import mean_change
from fedstage.algorithm.aggregation.server_optimizers import server_step
from fedstage.algorithm.local_trainers import fednova, local_trainer
from fedstage.data.participation import SCHEMA as PLAN_SCHEMA
from fedstage.data.partitions import CLIENTS_SCHEMA
from fedstage.randomness import torch_generator
from fedstage.settings.aggregation import ServerAverage
from fedstage.settings.local_training import FedNova
from fedstage.settings.optimisation import Client
from fedstage.stages.recipe import recipe
from fedstage.storage.files import save_json
from fedstage.storage.tables import save_table
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.training.batches import client_batches


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch.set_num_threads(1)


TRAINER = local_trainer(FedNova(name="fednova"))


def client(**changes):
    return Client.model_validate({"learning_rate": 0.1, "batch_size": 4, "epochs": 2} | changes)


# --- gradient masses ------------------------------------------------------------------------------


def test_without_momentum_the_mass_is_the_number_of_steps():
    assert [fednova.gradient_mass(client(), steps) for steps in (0, 1, 7)] == [0.0, 1.0, 7.0]


@pytest.mark.parametrize("rho", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("tau", [1, 2, 20, 300])
def test_with_momentum_the_mass_has_a_closed_form(rho, tau):
    expected = (tau - rho * (1 - rho**tau) / (1 - rho)) / (1 - rho)
    assert fednova.gradient_mass(client(momentum=rho), tau) == pytest.approx(expected, rel=1e-12)


def test_mass_of_twenty_steps_with_a_momentum_of_nine_tenths():
    assert fednova.gradient_mass(client(momentum=0.9), 20) == pytest.approx(120.9419, abs=5e-5)


SOLVERS = [
    {},
    {"momentum": 0.9},
    {"momentum": 0.7, "nesterov": True},
    {"schedule": {"step": {"milestones": [0.5], "factor": 0.1}}},
    {"momentum": 0.9, "schedule": "cosine"},
]


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_the_mass_is_how_far_torch_moves_along_a_gradient_of_one(solver):
    settings, steps = client(**solver), 10
    weight = torch.nn.Parameter(torch.zeros((), dtype=torch.float64))
    chosen = torch.optim.SGD(
        [weight], lr=0.1, momentum=settings.momentum, nesterov=settings.nesterov
    )
    for step in range(steps):
        rate = {"constant": 1.0, "step": 1.0 if step < 5 else 0.1}.get(
            settings.schedule.name, (1 + np.cos(np.pi * step / steps)) / 2
        )
        chosen.param_groups[0]["lr"] = 0.1 * rate
        weight.grad = torch.ones_like(weight)
        chosen.step()
    assert fednova.gradient_mass(settings, steps) == pytest.approx(-float(weight.detach()) / 0.1)


def test_who_repeats_a_gradient_twice_as_often_counts_the_same():
    """Changes of 6 and 12 steps along one gradient are scaled to the same length."""
    masses = [fednova.gradient_mass(client(), steps) for steps in (6, 12)]
    sent = [{"gradient_mass": torch.tensor(mass)} for mass in masses]
    scales = TRAINER.scales(sent, [0.5, 0.5])
    assert [scale * mass for scale, mass in zip(scales, masses, strict=True)] == [9.0, 9.0]


def test_equal_masses_are_the_plain_average():
    sent = [{"gradient_mass": torch.tensor(120.9419)}] * 3
    assert TRAINER.scales(sent, [0.2, 0.3, 0.5]) == pytest.approx([1.0] * 3, rel=1e-15)


def test_a_client_without_steps_has_no_direction():
    sent = [{"gradient_mass": torch.tensor(mass)} for mass in (0.0, 8.0)]
    assert TRAINER.scales(sent, [0.5, 0.5]) == [0.0, 0.5]
    assert TRAINER.scales(sent[:1], [1.0]) == [0.0]


# --- rounds of the stages -------------------------------------------------------------------------

SIZES = (9, 30, 14, 21)
OFFSETS = np.concatenate([[0], np.cumsum(SIZES)])
CLASSES, PIXELS, RATE = 3, 4, 0.05
PLAN = {1: (0, 1, 2), 2: (1, 2, 3), 3: (3, 0, 1), 4: (0, 1, 2)}
INFO = {"shape": [1, 2, 2], "classes": CLASSES, "mean": [0.5], "std": [0.25]}
SETTINGS = {
    "data": "digits",
    "clients": 4,
    "partition": "iid",
    "participants": 3,
    "model": "logistic_regression",
    "numerics": {"device": "cpu"},
    "seed": 5,
}


def samples():
    generator = torch_generator(0, "data")
    images = torch.randint(0, 256, (sum(SIZES), 1, 2, 2), generator=generator)
    return images.to(torch.uint8), torch.randint(0, CLASSES, (sum(SIZES),), generator=generator)


def start_weights():
    generator = torch_generator(0, "weights")
    weight = torch.randn(CLASSES, PIXELS, generator=generator)
    return {"linear.weight": weight, "linear.bias": torch.randn(CLASSES, generator=generator)}


@pytest.fixture
def world(tmp_path):
    images, labels = samples()
    save_tensors(tmp_path / "train", {"images": images, "labels": labels})
    save_tensors(tmp_path / "model_0", start_weights())
    save_json(tmp_path / "info", INFO)
    owners = np.repeat(range(4), SIZES)
    rows = {"client": owners, "sample": range(len(owners)), "role": ["train"] * len(owners)}
    save_table(tmp_path / "clients", rows, CLIENTS_SCHEMA)
    plan = [
        (t, participant, who, t - 1)
        for t, row in PLAN.items()
        for participant, who in enumerate(row)
    ]
    columns = dict(zip(PLAN_SCHEMA.names, zip(*plan, strict=True), strict=True))
    save_table(tmp_path / "plan", columns, PLAN_SCHEMA)
    return tmp_path


def stage_rounds(world, optimiser, aggregated, local="fednova"):
    """Run the stages; return the model after each round."""
    settings = SETTINGS | {"client": optimiser, "aggregation": aggregated, "local": local}
    recipe(settings=json.dumps(settings), output=world / "recipe")
    models = []
    for round_, chosen in PLAN.items():
        start, participants = world / f"model_{round_ - 1}", list(range(len(chosen)))
        updates = [world / f"update_{participant}" for participant in participants]
        local_training(
            recipe=world / "recipe", round=round_, group=0, participants=participants,
            data=world / "train",
            info=world / "info", clients=world / "clients", participation=world / "plan",
            start=start, outputs=updates,
        )  # fmt: skip
        aggregation(
            recipe=world / "recipe", info=world / "info", start=start, updates=updates,
            state=world / f"state_{round_ - 1}" if round_ > 1 else None,
            output=world / f"model_{round_}", participants=world / "participants",
            new_state=world / f"state_{round_}",
        )  # fmt: skip
        models.append(load_tensors(world / f"model_{round_}")[0])
    return models


def gradient(weights, number, index):
    """Gradient, in float64, of the mean cross entropy of some of a client's samples.

    The weights are one matrix, the bias its last column.
    """
    images, labels = samples()
    own = slice(OFFSETS[number], OFFSETS[number + 1])
    pixels = ((images[own].double() / 255 - 0.5) / 0.25).flatten(1).numpy()[index]
    inputs = np.hstack([pixels, np.ones((len(index), 1))])
    logits = inputs @ weights.T
    errors = np.exp(logits - logits.max(1, keepdims=True))
    errors /= errors.sum(1, keepdims=True)
    errors[range(len(index)), labels[own].numpy()[index]] -= 1
    return errors.T @ inputs / len(index)


def as_matrix(model):
    weight, bias = (model[f"linear.{name}"].double().numpy() for name in ("weight", "bias"))
    return np.hstack([weight, bias[:, None]])


def normalised_direction(weights, settings, round_, number):
    """The paper's d_i = sum_j a_j g_j / ||a||_1, with a_j = 1 + rho + ... + rho^(tau - 1 - j)."""
    key = torch_generator(SETTINGS["seed"], "local_training", round_, number, "batches")
    rho, rate = settings.momentum, settings.learning_rate * settings.round_decay ** (round_ - 1)
    buffer, gradients = np.zeros_like(weights), []
    for index in client_batches(SIZES[number], settings, key):
        gradients.append(gradient(weights, number, index.numpy()))
        buffer = rho * buffer + gradients[-1]
        weights = weights - rate * buffer
    tau = len(gradients)
    a = np.array([sum(rho**power for power in range(tau - j)) for j in range(tau)])
    return np.tensordot(a, np.stack(gradients), 1) / a.sum(), a.sum()


def plain_rounds(settings, uniform, global_momentum):
    weights = as_matrix(start_weights())
    buffer, models = np.zeros_like(weights), []
    for round_, chosen in PLAN.items():
        rate = settings.learning_rate * settings.round_decay ** (round_ - 1)
        p = np.array([1.0 if uniform else float(SIZES[number]) for number in chosen])
        p /= p.sum()
        found = [normalised_direction(weights, settings, round_, number) for number in chosen]
        directions, masses = (np.stack(part) for part in zip(*found, strict=True))
        step = (p @ masses) * np.tensordot(p, directions, 1)
        buffer = global_momentum * buffer + step
        weights = weights - rate * buffer
        models.append(weights)
    return models


@pytest.mark.parametrize(
    ("solver", "weights", "global_momentum"),
    [
        ({}, "samples", 0.0),
        ({"momentum": 0.9}, "samples", 0.0),
        ({"momentum": 0.9}, "uniform", 0.8),
        ({"round_decay": 0.5}, "samples", 0.0),
    ],
    ids=str,
)
def test_rounds_are_those_of_the_paper_from_the_gradients(world, solver, weights, global_momentum):
    optimiser = {"learning_rate": RATE, "batch_size": 5, "epochs": 2} | solver
    aggregated = {"weights": weights}
    if global_momentum:
        aggregated["server_optimizer"] = {"momentum": {"beta": global_momentum}}
    found = stage_rounds(world, optimiser, aggregated)
    settings = Client.model_validate(optimiser)
    expected = plain_rounds(settings, weights == "uniform", global_momentum)
    for model, plain in zip(found, expected, strict=True):
        assert np.allclose(as_matrix(model), plain, rtol=1e-4, atol=2e-6)


def test_clients_with_equally_many_steps_make_it_fedavg(world):
    optimiser = {"learning_rate": RATE, "batch_size": 5, "steps": 6, "momentum": 0.9}
    nova = stage_rounds(world, optimiser, {})
    plain = stage_rounds(world, optimiser, {}, local="fedavg")
    for one, other in zip(nova, plain, strict=True):
        assert all(torch.allclose(one[name], other[name], atol=1e-6) for name in one)


def test_a_client_sends_one_number_beside_its_weights(world):
    stage_rounds(world, {"learning_rate": RATE, "batch_size": 5, "epochs": 2}, {})
    tensors, notes = load_tensors(world / "update_0")
    (mass,) = [value for name, value in tensors.items() if name.startswith("payload/")]
    assert (float(mass), mass.nbytes) == (notes["steps"], 4)
    assert notes["steps"] == 2 * -(-SIZES[PLAN[4][0]] // 5)


# --- what it is for -------------------------------------------------------------------------------

#: f_i(w) = (w - c_i)' H_i (w - c_i) / 2, its share p_i, and the client's steps in a round.
CENTRES = np.array([[3.0, -1.0], [-2.0, 4.0], [1.0, 1.0]])
CURVES = np.array([[1.0, 2.0], [3.0, 0.5], [0.5, 1.0]])
SHARES, STEPS = np.array([0.5, 0.3, 0.2]), (2, 25, 8)
OPTIMUM = (SHARES[:, None] * CURVES * CENTRES).sum(0) / (SHARES[:, None] * CURVES).sum(0)


def fixed_point(momentum, normalise, rate=1e-3, rounds=1000):
    """Where rounds with these steps end."""
    weights = torch.zeros(2, dtype=torch.float64)
    for _ in range(rounds):
        ends, sent = [], []
        for centre, curve, steps in zip(CENTRES, CURVES, STEPS, strict=True):
            w, v = weights.numpy().copy(), 0.0
            for _ in range(steps):
                v = momentum * v + curve * (w - centre)
                w = w - rate * v
            ends.append({"w": torch.from_numpy(w)})
            mass = fednova.gradient_mass(client(momentum=momentum), steps)
            sent.append({"gradient_mass": torch.tensor(mass)})
        scales = TRAINER.scales(sent, SHARES.tolist()) if normalise else [1.0] * 3
        factors = [share * scale for share, scale in zip(SHARES, scales, strict=True)]
        change = mean_change({"w": weights}, ends, factors, ["w"])
        moved, _ = server_step(ServerAverage(name="average"), {"w": weights}, change, {})
        weights = moved["w"]
    return weights.numpy()


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_unequal_steps_do_not_move_its_fixed_point_and_move_that_of_fedavg(momentum):
    normalised = np.abs(fixed_point(momentum, normalise=True) - OPTIMUM).max()
    plain = np.abs(fixed_point(momentum, normalise=False) - OPTIMUM).max()
    assert normalised < 0.1
    assert plain > 0.5
