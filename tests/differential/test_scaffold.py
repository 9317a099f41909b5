"""SCAFFOLD against a plain loop in float64, its identities, and what it is for."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import nn

from fedstage.algorithm.aggregation.averages import average_weights, move_towards
from fedstage.algorithm.exchange.round_state import read_state
from fedstage.algorithm.exchange.updates import Update
from fedstage.algorithm.local_trainers import Trained, local_trainer
from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.local_training import FedAvg, Scaffold
from fedstage.settings.models import LogisticRegression
from fedstage.settings.optimisation import Client
from fedstage.storage.tensors import save_tensors
from fedstage.training.batches import client_batches
from fedstage.training.loop import train

INFO = {"mean": [0.5], "std": [0.25]}
CLASSES, CLIENTS = 3, 4
SIZES = [9, 14, 6, 11]
METHODS = {
    "fedavg": FedAvg(name="fedavg"),
    "scaffold": Scaffold(name="scaffold"),
    "by_samples": Scaffold(name="scaffold", weights="samples"),
}


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


def batches(chosen, client, round_):
    key = torch_generator(0, round_, client, "batches")
    return client_batches(len(client_data(client)[1]), chosen, key)


# --- with the code under test -------------------------------------------------------------------


def local_round(method, chosen, weights, state, client, round_):
    """Train one participant; return its weights and its payload."""
    model = build(LogisticRegression(name="logistic_regression"), (1, 2, 2), CLASSES)
    model.load_state_dict(weights)
    trainer, loss = local_trainer(METHODS[method]), nn.functional.cross_entropy
    images, labels = client_data(client)
    outcome = train(
        model,
        images,
        labels,
        batches(chosen, client, round_),
        chosen,
        loss,
        INFO,
        torch_generator(0, "augmentation"),
        rate=chosen.round_decay ** (round_ - 1),
        gradient_term=trainer.gradient_term(weights, state, client),
    )
    end = {name: value.clone() for name, value in model.state_dict().items()}
    trained = Trained(weights, end, outcome, None, None, None)
    return end, trainer.payload(trained, state, client)


def update(client, payload, samples):
    return Update(None, {}, payload, {"client": client, "samples": samples})


def federated(method, chosen, participants, weights=None, rate=1.0):
    """Run rounds with the given participants; yield weights and state after each."""
    weights, state = start_weights() if weights is None else weights, {}
    trainer = local_trainer(METHODS[method])
    for round_, chosen_clients in enumerate(participants, start=1):
        sent = {i: local_round(method, chosen, weights, state, i, round_) for i in chosen_clients}
        average = average_weights([sent[i][0] for i in chosen_clients], [1.0] * len(sent))
        weights = move_towards(weights, average, rate, weights)
        updates = [update(i, sent[i][1], SIZES[i]) for i in chosen_clients]
        state = trainer.next_state(state, updates, CLIENTS)
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


def slow_scaffold(chosen, participants, factors=None, global_rate=1.0, by_samples=False):
    """The published algorithm; yields x, c and all c_i."""
    x, c = vector(start_weights()), np.zeros(15)
    own = {client: np.zeros(15) for client in range(CLIENTS)}
    for round_, chosen_clients in enumerate(participants, start=1):
        ends, changes = [], []
        for client in chosen_clients:
            y, rates = x.copy(), 0.0
            indices = batches(chosen, client, round_)
            for step, index in enumerate(indices):
                rate = chosen.learning_rate * chosen.round_decay ** (round_ - 1)
                rate *= 1.0 if factors is None else factors(step, len(indices))
                slope = gradient(y, client, index.numpy(), chosen.weight_decay)
                y = y - rate * (slope - own[client] + c)
                rates += rate
            after = own[client] - c + (x - y) / rates
            ends.append(y)
            changes.append(after - own[client])
            own[client] = after
        x = x + global_rate * np.mean([y - x for y in ends], axis=0)
        mean = np.mean(changes, axis=0)
        if by_samples:
            sizes = np.array([SIZES[client] for client in chosen_clients])
            mean = (sizes / sizes.sum()) @ np.array(changes)
        c = c + len(chosen_clients) / CLIENTS * mean
        yield x, c, {client: value.copy() for client, value in own.items()}


PARTIAL = [(0, 2), (3, 2), (1, 0)]


#: Settings of clients, the schedule's factors, the server's rate and the method.
VARIANTS = [
    ({}, None, 1.0, "scaffold"),
    ({}, None, 0.5, "scaffold"),
    ({}, None, 1.0, "by_samples"),
    ({"weight_decay": 0.05}, None, 1.5, "scaffold"),
    ({"round_decay": 0.7}, None, 1.0, "scaffold"),
    (
        {"schedule": {"step": {"milestones": [0.5], "factor": 0.1}}},
        lambda step, steps: 1.0 if step < steps / 2 else 0.1,
        1.0,
        "scaffold",
    ),
    ({"epochs": None, "steps": 3}, None, 1.0, "scaffold"),
]


@pytest.mark.parametrize(("change", "factors", "global_rate", "method"), VARIANTS)
def test_three_rounds_of_partial_participation_are_the_plain_loop(
    change, factors, global_rate, method
):
    chosen, of_method = settings(**change), METHODS[method]
    by_samples = of_method.weights == "samples"
    ours = federated(method, chosen, PARTIAL, rate=global_rate)
    plain = slow_scaffold(chosen, PARTIAL, factors, global_rate, by_samples)
    for (weights, state), (x, c, own) in zip(ours, plain, strict=True):
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
        local_trainer(METHODS["scaffold"]).gradient_term(start, state, client)([parameter])
        assert parameter.grad.tolist() == expected


def test_what_is_sent_down_is_c():
    start, trainer = {"w": torch.zeros(2)}, local_trainer(METHODS["scaffold"])
    assert trainer.sent_down(start, {})["w"].tolist() == [0, 0]
    state = {"server/w": torch.tensor([1.0, 2.0]), "client/0/w": torch.ones(2)}
    assert trainer.sent_down(start, state)["w"].tolist() == [1, 2]


def test_state_of_clients_that_did_not_answer_stays():
    state = {"server/w": torch.ones(1), "client/0/w": torch.ones(1), "client/10/w": torch.ones(1)}
    updates = [update(1, {"w": torch.tensor([4.0])}, 3)]
    after = local_trainer(METHODS["scaffold"]).next_state(state, updates, clients=8)
    assert {name: float(value) for name, value in after.items()} == {
        "server/w": 1.5, "client/0/w": 1.0, "client/10/w": 1.0, "client/1/w": 4.0,
    }  # fmt: skip
    assert float(state["server/w"]) == 1.0, "the old state is left alone"
    for method in ("scaffold", "by_samples"):
        assert local_trainer(METHODS[method]).next_state(state, [], clients=8) == state


# --- identities ---------------------------------------------------------------------------------

ALL = tuple(range(CLIENTS))


@pytest.mark.parametrize("participants", [ALL, (1, 3)])
def test_first_round_is_fedavg_with_the_plain_mean(participants):
    (ours, _), (plain, _) = (
        next(federated(method, settings(), [participants])) for method in ("scaffold", "fedavg")
    )
    assert all(torch.equal(ours[name], plain[name]) for name in plain)


# --- several global models ----------------------------------------------------------------------

#: By round the clients of two groups; every client but 2 changes its group.
GROUPS = [((0, 2), (3,)), ((3, 2), (1,)), ((1,), (0,)), ((2, 0), (1, 3))]


def two_models():
    second = {name: value + 0.1 for name, value in start_weights().items()}
    return [start_weights(), second]


def federated_groups(folder, chosen):
    """Run rounds of two groups through files; yield the models, and the state that each reads."""
    models, states = two_models(), [{}, {}]
    for round_, groups in enumerate(GROUPS, start=1):
        known, paths = states, [folder / f"{round_}_{group}" for group in (0, 1)]
        if round_ > 1:
            before = [folder / f"{round_ - 1}_{group}" for group in (0, 1)]
            known = [read_state([path]) for path in before]
            yield models, known
        for group, clients in enumerate(groups):
            sent = {
                i: local_round("scaffold", chosen, models[group], known[group], i, round_)
                for i in clients
            }
            models[group] = average_weights([sent[i][0] for i in clients], [1.0] * len(clients))
            updates = [update(i, sent[i][1], SIZES[i]) for i in clients]
            trainer = local_trainer(METHODS["scaffold"])
            states[group] = trainer.next_state(states[group], updates, CLIENTS)
            save_tensors(paths[group], states[group], {"group": group})


def slow_groups(chosen):
    """The same with plain vectors: a set of variates for each model."""
    models = [vector(weights) for weights in two_models()]
    sets = [{"c": np.zeros(15), "own": {i: np.zeros(15) for i in ALL}} for _ in models]
    for round_, groups in enumerate(GROUPS, start=1):
        moves = []
        before = [known["c"].copy() for known in sets]
        for group, clients in enumerate(groups):
            ends = []
            for client in clients:
                y, indices = models[group].copy(), batches(chosen, client, round_)
                for index in indices:
                    slope = gradient(y, client, index.numpy())
                    y = y - 0.2 * (slope - sets[group]["own"][client] + before[group])
                change = (models[group] - y) / (0.2 * len(indices)) - before[group]
                sets[group]["own"][client] = sets[group]["own"][client] + change
                moves.append((group, change))
                ends.append(y)
            models[group] = np.mean(ends, axis=0)
        for group, change in moves:
            sets[group]["c"] = sets[group]["c"] + change / CLIENTS
        if round_ < len(GROUPS):
            yield models, sets


def test_variates_of_two_global_models_are_those_of_the_plain_loop(tmp_path):
    chosen, compared = settings(), 0
    ours, plain = federated_groups(tmp_path, chosen), slow_groups(chosen)
    for (models, states), (expected, sets) in zip(ours, plain, strict=True):
        for group in (0, 1):
            assert np.allclose(vector(models[group]), expected[group], rtol=1e-4, atol=1e-5)
            c = variate(states[group], "server")
            assert np.allclose(c, sets[group]["c"], rtol=1e-4, atol=1e-5)
            own = [variate(states[group], f"client/{client}") for client in ALL]
            assert np.allclose(own, list(sets[group]["own"].values()), rtol=1e-4, atol=1e-5)
            assert np.allclose(c, np.mean(own, axis=0), atol=1e-6), "the identity of c"
            compared += 1
    assert compared == 2 * (len(GROUPS) - 1)


# --- what it is for -----------------------------------------------------------------------------

DECAY = 0.1


def mean_loss(w):
    """The clients' mean of the cross entropy, plus decay/2 ||w||^2, and its gradient; float64."""
    losses = []
    for client in ALL:
        pixels, wanted = pixels_of(client)
        logits = pixels @ w[:12].reshape(CLASSES, 4).T + w[12:]
        shifted = logits - logits.max(1, keepdims=True)
        right = (shifted * wanted).sum(1) - np.log(np.exp(shifted).sum(1))
        losses.append(-right.mean())
    slope = np.mean([gradient(w, client, decay=DECAY) for client in ALL], axis=0)
    return np.mean(losses) + DECAY / 2 * w @ w, slope


def optimum():
    found = minimize(mean_loss, np.zeros(15), jac=True, method="BFGS", options={"gtol": 1e-10})
    assert np.abs(mean_loss(found.x)[1]).max() < 1e-8
    return found.x


def test_scaffold_reaches_the_optimum_where_fedavg_stalls():
    chosen = settings(batch_size=20, epochs=None, steps=8, learning_rate=0.3, weight_decay=DECAY)
    best = optimum()
    begun = np.linalg.norm(vector(start_weights()) - best)
    distances = {}
    for method in METHODS:
        weights = [vector(weights) for weights, _ in federated(method, chosen, [ALL] * 60)]
        distances[method] = [np.linalg.norm(w - best) for w in (weights[29], weights[59])]
    assert begun > 0.5
    assert distances["fedavg"][1] > 0.02
    assert distances["fedavg"][1] == pytest.approx(distances["fedavg"][0], rel=0.01), "stalled"
    assert distances["scaffold"][1] < 1e-5
