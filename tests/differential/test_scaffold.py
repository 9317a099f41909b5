"""SCAFFOLD against a plain loop in float64, its identities, and what it is for."""

import numpy as np
import pytest
import torch
from torch import nn

from fedstage.aggregation import average_weights
from fedstage.config import Client, FedAvg, LogisticRegression, Scaffold
from fedstage.engine.batches import client_batches
from fedstage.engine.training import train
from fedstage.local_trainers import local_trainer, scaffold
from fedstage.models.build import build
from fedstage.models.initialisation import initialise
from fedstage.randomness import torch_generator

INFO = {"mean": [0.5], "std": [0.25]}
CLASSES, CLIENTS = 3, 4
SIZES = [9, 14, 6, 11]
METHODS = {"fedavg": FedAvg(name="fedavg"), "scaffold": Scaffold(name="scaffold")}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch.set_num_threads(1)  # as stages do; more only cost time on tensors this small


def client_data(client):
    """Images of 2x2 pixels whose brightness and labels depend on the client: not alike."""
    generator = torch_generator(client, "data")
    shape = (SIZES[client], 1, 2, 2)
    images = torch.randint(30 * client, 160 + 30 * client, shape, generator=generator)
    labels = torch.randint(0, CLASSES, (SIZES[client],), generator=generator)
    labels[: SIZES[client] // 2] = client % CLASSES
    return images.to(torch.uint8), labels


def settings(**changes):
    plain = {"learning_rate": 0.2, "batch_size": 5, "epochs": 2, "last_batch": "keep"}
    return Client.model_validate(plain | changes)


def start_weights():
    model = build(LogisticRegression(name="logistic_regression"), (1, 2, 2), CLASSES)
    initialise(model, torch_generator(0, "weights"))
    return {name: value.clone() for name, value in model.state_dict().items()}


def batches(chosen, client, round):
    key = torch_generator(0, round, client, "batches")
    return client_batches(len(client_data(client)[1]), chosen, key)


# --- with the code under test -------------------------------------------------------------------


def local_round(method, chosen, weights, state, client, round):
    """Train one participant; return its weights and its payload."""
    model = build(LogisticRegression(name="logistic_regression"), (1, 2, 2), CLASSES)
    model.load_state_dict(weights)
    trainer = local_trainer(method)
    images, labels = client_data(client)
    outcome = train(
        model,
        images,
        labels,
        batches(chosen, client, round),
        chosen,
        nn.functional.cross_entropy,
        INFO,
        torch_generator(0, "augmentation"),
        rate=chosen.round_decay ** (round - 1),
        gradient_term=trainer.gradient_term(METHODS[method], weights, state, client),
    )
    trained = {name: value.clone() for name, value in model.state_dict().items()}
    return trained, trainer.payload(weights, trained, state, client, outcome)


def federated(method, chosen, participants, weights=None):
    """Run rounds with the given participants; yield weights and state after each."""
    weights, state = start_weights() if weights is None else weights, {}
    for round, chosen_clients in enumerate(participants, start=1):
        sent = {i: local_round(method, chosen, weights, state, i, round) for i in chosen_clients}
        weights = average_weights([sent[i][0] for i in chosen_clients], [1.0] * len(sent))
        payloads = {i: sent[i][1] for i in chosen_clients}
        state = local_trainer(method).next_state(state, payloads, CLIENTS)
        yield weights, state


def variate(state, who):
    """Return the variate of `server` or `client/ID` as one vector, zero where there is none."""
    flat = [
        state.get(f"{who}/{name}", torch.zeros_like(value)).flatten()
        for name, value in start_weights().items()
    ]
    return torch.cat(flat).double().numpy()


def vector(weights):
    return torch.cat([value.flatten() for value in weights.values()]).double().numpy()


# --- by hand: parameters are one float64 vector, W [3, 4] and then b [3] -------------------------


def pixels_of(client):
    images, labels = client_data(client)
    pixels = (images.numpy().reshape(-1, 4).astype(np.float64) / 255 - 0.5) / 0.25
    return pixels, np.eye(CLASSES)[labels.numpy()]


def gradient(w, client, index=None, decay=0.0):
    """Gradient of the mean cross entropy of softmax regression, plus decay w."""
    pixels, wanted = pixels_of(client)
    if index is not None:
        pixels, wanted = pixels[index], wanted[index]
    logits = pixels @ w[:12].reshape(CLASSES, 4).T + w[12:]
    odds = np.exp(logits - logits.max(1, keepdims=True))
    wrong = (odds / odds.sum(1, keepdims=True) - wanted) / len(pixels)
    return np.concatenate([(wrong.T @ pixels).ravel(), wrong.sum(0)]) + decay * w


def slow_scaffold(chosen, participants, factors=None):
    """The published algorithm, option II, with eta_g = 1; yields x, c and all c_i."""
    x, c = vector(start_weights()), np.zeros(15)
    own = {client: np.zeros(15) for client in range(CLIENTS)}
    for round, chosen_clients in enumerate(participants, start=1):
        ends, changes = [], []
        for client in chosen_clients:
            y, rates = x.copy(), 0.0
            indices = batches(chosen, client, round)
            for step, index in enumerate(indices):
                rate = chosen.learning_rate * chosen.round_decay ** (round - 1)
                rate *= 1.0 if factors is None else factors(step, len(indices))
                slope = gradient(y, client, index.numpy(), chosen.weight_decay)
                y = y - rate * (slope - own[client] + c)
                rates += rate
            after = own[client] - c + (x - y) / rates
            ends.append(y)
            changes.append(after - own[client])
            own[client] = after
        x = x + np.mean([y - x for y in ends], axis=0)
        c = c + np.sum(changes, axis=0) / CLIENTS
        yield x, c, {client: value.copy() for client, value in own.items()}


PARTIAL = [(0, 2), (3, 2), (1, 0)]


@pytest.mark.parametrize(
    ("change", "factors"),
    [
        ({}, None),
        ({"weight_decay": 0.05}, None),
        ({"round_decay": 0.7}, None),
        (
            {"schedule": {"step": {"milestones": [0.5], "factor": 0.1}}},
            lambda step, steps: 1.0 if step < steps / 2 else 0.1,
        ),
        ({"epochs": None, "steps": 3}, None),
    ],
    ids=["plain", "weight_decay", "round_decay", "schedule", "steps"],
)
def test_three_rounds_of_partial_participation_are_the_plain_loop(change, factors):
    chosen = settings(**change)
    ours = federated("scaffold", chosen, PARTIAL)
    for (weights, state), (x, c, own) in zip(
        ours, slow_scaffold(chosen, PARTIAL, factors), strict=True
    ):
        assert np.allclose(vector(weights), x, rtol=1e-4, atol=1e-5)
        assert np.allclose(variate(state, "server"), c, rtol=1e-4, atol=1e-5)
        for client in range(CLIENTS):
            variate_i = variate(state, f"client/{client}")
            assert np.allclose(variate_i, own[client], rtol=1e-4, atol=1e-5)
    assert np.abs(c).max() > 0.01, "the variates have moved"


def test_local_step_adds_c_and_subtracts_c_i():
    start = {"w": torch.zeros(2)}
    state = {"server/w": torch.tensor([1.0, 2.0]), "client/7/w": torch.tensor([10.0, 20.0])}
    parameter = nn.Parameter(torch.zeros(2))
    for client, expected in [(7, [-8.5, -17.5]), (1, [1.5, 2.5])]:
        parameter.grad = torch.tensor([0.5, 0.5])
        scaffold.gradient_term(METHODS["scaffold"], start, state, client)([parameter])
        assert parameter.grad.tolist() == expected


def test_what_is_sent_down_is_c():
    start = {"w": torch.zeros(2)}
    assert scaffold.sent_down(start, {})["w"].tolist() == [0, 0]
    state = {"server/w": torch.tensor([1.0, 2.0]), "client/0/w": torch.ones(2)}
    assert scaffold.sent_down(start, state)["w"].tolist() == [1, 2]


def test_state_of_clients_that_did_not_answer_stays():
    state = {"server/w": torch.ones(1), "client/0/w": torch.ones(1), "client/10/w": torch.ones(1)}
    after = scaffold.next_state(state, {1: {"w": torch.tensor([4.0])}}, clients=8)
    assert {name: float(value) for name, value in after.items()} == {
        "server/w": 1.5, "client/0/w": 1.0, "client/10/w": 1.0, "client/1/w": 4.0,
    }  # fmt: skip
    assert float(state["server/w"]) == 1.0, "the old state is left alone"
    assert scaffold.next_state(state, {}, clients=8) == state


# --- identities ---------------------------------------------------------------------------------

ALL = tuple(range(CLIENTS))


@pytest.mark.parametrize("participants", [ALL, (1, 3)])
def test_first_round_is_fedavg_with_the_plain_mean(participants):
    (ours, _), (plain, _) = (
        next(federated(method, settings(), [participants])) for method in ("scaffold", "fedavg")
    )
    assert all(torch.equal(ours[name], plain[name]) for name in plain)


def test_second_round_is_not_fedavg():
    ours, plain = (
        list(federated(method, settings(), [ALL, ALL]))[1][0] for method in ("scaffold", "fedavg")
    )
    assert not np.allclose(vector(ours), vector(plain), atol=1e-3)


def test_under_full_participation_c_is_the_mean_of_all_c_i():
    for _, state in federated("scaffold", settings(), [ALL] * 4):
        mean = np.mean([variate(state, f"client/{client}") for client in ALL], axis=0)
        assert np.allclose(variate(state, "server"), mean, atol=1e-6)


def test_one_full_batch_step_is_a_gradient_step_on_the_mean_loss():
    chosen = settings(batch_size=20, epochs=None, steps=1)
    x = vector(start_weights())
    for weights, _ in federated("scaffold", chosen, [ALL] * 5):
        x = x - 0.2 * np.mean([gradient(x, client) for client in ALL], axis=0)
        assert np.allclose(vector(weights), x, rtol=1e-4, atol=1e-5)


def test_after_one_full_batch_step_c_i_is_the_clients_gradient():
    chosen = settings(batch_size=20, epochs=None, steps=1)
    rounds = list(federated("scaffold", chosen, [ALL] * 3))
    before = vector(rounds[1][0])
    for client in ALL:
        own = variate(rounds[2][1], f"client/{client}")
        assert np.allclose(own, gradient(before, client), rtol=1e-3, atol=1e-5)


def test_identical_clients_have_identical_variates(monkeypatch):
    data, cut = client_data(1), settings(batch_size=20)
    monkeypatch.setattr(f"{__name__}.client_data", lambda client: data)
    for _, state in federated("scaffold", cut, [ALL] * 3):
        for client in ALL:
            own = variate(state, f"client/{client}")
            assert np.allclose(own, variate(state, "server"), atol=1e-6)


# --- what it is for -----------------------------------------------------------------------------


def global_gradient_norm(weights, decay):
    w = vector(weights)
    return np.linalg.norm(np.mean([gradient(w, client, decay=decay) for client in ALL], axis=0))


def test_scaffold_reaches_the_optimum_where_fedavg_stalls():
    chosen = settings(batch_size=20, epochs=None, steps=8, learning_rate=0.3, weight_decay=0.1)
    norms = {}
    for method in METHODS:
        *_, (weights, _) = federated(method, chosen, [ALL] * 60)
        norms[method] = global_gradient_norm(weights, decay=0.1)
    assert global_gradient_norm(start_weights(), decay=0.1) > 0.5
    assert norms["fedavg"] > 1e-2
    assert norms["scaffold"] < 1e-5
