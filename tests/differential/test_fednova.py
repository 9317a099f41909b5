"""FedNova: its gradient masses and what it is for; `reference/fednova.py` has whole rounds."""

import numpy as np
import pytest
import torch

from fedstage.algorithm.aggregation.averages import mean_change
from fedstage.algorithm.aggregation.server_optimizers import server_step
from fedstage.algorithm.local_trainers import fednova, local_trainer
from fedstage.settings.aggregation import ServerAverage
from fedstage.settings.local_training import FedNova
from fedstage.settings.optimisation import Client


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch.set_num_threads(1)


TRAINER = local_trainer(FedNova(name="fednova"))


def client(**changes):
    return Client.model_validate({"learning_rate": 0.1, "batch_size": 4, "epochs": 2} | changes)


# --- gradient masses ------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [0.0, 0.1, 0.9, 0.99])
def test_the_mass_has_a_closed_form(rho):
    for tau in (0, 1, 2, 20, 300):
        mass = fednova.gradient_mass(client(momentum=rho), tau)
        expected = (tau - rho * (1 - rho**tau) / (1 - rho)) / (1 - rho)
        assert mass == pytest.approx(expected, rel=1e-12)


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
