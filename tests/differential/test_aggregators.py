"""Aggregators against independent implementations in NumPy, float64, from the papers' equations."""

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter

from fedstage.algorithm.one_shot.aggregator_training import Samples, Task, federated
from fedstage.algorithm.one_shot.aggregators import Knowledge, combination, rule
from fedstage.algorithm.one_shot.fitting import count_votes
from fedstage.randomness import torch_generator
from fedstage.settings.aggregators import Aggregator, FederatedRounds

M, C, HIDDEN = 4, 3, 5


def chosen(raw):
    return TypeAdapter(Aggregator).validate_python(raw)


def data(samples, seed):
    random = np.random.default_rng(seed)
    labels = random.integers(C, size=samples)
    logits = random.normal(size=(M, samples, C)) * 2
    for member in range(M):
        logits[member, np.arange(samples), labels] += random.uniform(0, 3)
    return logits, labels


def softmax(scores):
    odds = np.exp(scores - scores.max(-1, keepdims=True))
    return odds / odds.sum(-1, keepdims=True)


def said(raw, logits, parameters):
    tensors = {name: torch.as_tensor(value) for name, value in parameters.items()}
    return combination(chosen(raw))(tensors, torch.as_tensor(logits), None).numpy()


# --- rules ----------------------------------------------------------------------------------------


def test_weighted_averaging_is_the_papers_sum():
    counts = np.array([[5, 0, 1], [3, 0, 1], [0, 0, 8], [2, 0, 2]])
    logits, _ = data(30, 0)
    expected = np.zeros((30, C))
    for n in range(30):
        for c in range(C):
            held = sum(counts[j, c] for j in range(M))
            for i in range(M):
                weight = counts[i, c] / held if held else 1 / M
                expected[n, c] += weight * logits[i, n, c]
    known = Knowledge(torch.as_tensor(counts), (1, 8, 8))
    parameters = rule(chosen("weighted")).parameters(chosen("weighted"), known, torch.Generator())
    exact = {name: value.double() for name, value in parameters.items()}
    np.testing.assert_allclose(said("weighted", logits, exact), expected, atol=1e-6)


def test_confidence_is_the_variance_weighted_consensus():
    logits, _ = data(30, 1)
    probabilities = softmax(logits)
    variances = probabilities.var(2)
    weights = variances / variances.sum(0)
    expected = np.log((weights[:, :, None] * probabilities).sum(0))
    np.testing.assert_allclose(said("confidence", logits, {}), expected, atol=1e-12)


def test_the_network_is_two_products_and_a_relu():
    logits, _ = data(30, 2)
    random = np.random.default_rng(3)
    w1, w2 = random.normal(size=(M * C, HIDDEN)), random.normal(size=(HIDDEN, C))
    b1, b2 = random.normal(size=HIDDEN), random.normal(size=C)
    z = np.stack([np.concatenate([logits[i, n] for i in range(M)]) for n in range(30)])
    plain = np.maximum(z @ w1, 0) @ w2
    raw = {"mlp": {"hidden": HIDDEN}}
    np.testing.assert_allclose(said(raw, logits, {"weight1": w1, "weight2": w2}), plain, atol=1e-12)
    with_biases = np.maximum(z @ w1 + b1, 0) @ w2 + b2
    everything = {"weight1": w1, "weight2": w2, "bias1": b1, "bias2": b2}
    np.testing.assert_allclose(said(raw, logits, everything), with_biases, atol=1e-12)


# --- voting ---------------------------------------------------------------------------------------


def slow_votes(logits, labels):
    """Decide by raw products of probabilities, as the rule is printed; votes that are added are 1.

    The prior is uniform, and only a right decision has a benefit.
    """
    parts = np.array_split(np.arange(len(labels)), 3)  # the clients
    tables = np.zeros((M, C, C))
    for part in parts:
        for n in part:
            for i in range(M):
                tables[i, logits[i, n].argmax(), labels[n]] += 1
    truths = np.bincount(labels, minlength=C)

    def decide(votes):
        gains = np.zeros(C)
        for c in range(C):
            chances = [(tables[i, votes[i], c] + 1) / (truths[c] + C) for i in range(M)]
            gains[c] = np.prod(chances) / C
        return gains

    return decide


@pytest.mark.parametrize("present", [3, 2])
def test_voting_is_the_decision_of_highest_expected_benefit(present):
    logits, labels = data(60, 4)
    labels, settings = labels % present, chosen("voting")
    parts = np.array_split(np.arange(60), 3)
    tensors = torch.as_tensor(logits), torch.as_tensor(labels)
    votes = sum(count_votes(tensors[0][:, part], tensors[1][part]) for part in parts)
    known = Knowledge(torch.ones(M, C, dtype=torch.int64), (1, 8, 8), votes)
    parameters = rule(settings).parameters(settings, known, torch.Generator())
    fresh, _ = data(200, 5)
    scores = combination(settings)(parameters, torch.as_tensor(fresh), None).numpy()
    decide = slow_votes(logits, labels)
    for n in range(200):
        gains = decide(fresh[:, n].argmax(1))
        np.testing.assert_allclose(scores[n], np.log(gains / gains.max()), atol=1e-4)


# --- federated rounds -----------------------------------------------------------------------------


def slow_gradient(w1, w2, logits, labels):
    """Of the mean cross entropy of W_2^T relu(W_1^T z)."""
    z = logits.transpose(1, 0, 2).reshape(len(labels), -1)
    before = z @ w1
    hidden = np.maximum(before, 0)
    wrong = (softmax(hidden @ w2) - np.eye(C)[labels]) / len(labels)
    return z.T @ ((wrong @ w2.T) * (before > 0)), hidden.T @ wrong


def slow_rounds(start, clients, settings, batches, rule_of_v):
    """FENS, Algorithm 2, phase 2, with FedAdam or FedYogi on the server."""
    weights = [value.astype(np.float64) for value in start]
    m, v = [0.0, 0.0], [0.0, 0.0]
    used = dict.fromkeys(clients, 0)
    for _ in range(settings.rounds):
        deltas, sizes = [], []
        for client, (logits, labels) in clients.items():
            own = [value.copy() for value in weights]
            for _ in range(settings.steps):
                index = batches[client][used[client]]
                used[client] += 1
                slopes = slow_gradient(*own, logits[:, index], labels[index])
                own = [w - settings.learning_rate * g for w, g in zip(own, slopes, strict=True)]
            deltas.append([o - w for o, w in zip(own, weights, strict=True)])
            sizes.append(len(labels) if settings.weights == "samples" else 1)
        shares = np.array(sizes) / sum(sizes)
        server = settings.server_optimizer
        for part in range(2):
            delta = sum(s * d[part] for s, d in zip(shares, deltas, strict=True))
            m[part] = server.beta1 * m[part] + (1 - server.beta1) * delta
            v[part] = rule_of_v(v[part], delta**2, server.beta2)
            step = m[part] / (np.sqrt(v[part]) + server.epsilon)
            weights[part] = weights[part] + server.learning_rate * step
    return weights


def adam(v, squared, beta2):
    return beta2 * v + (1 - beta2) * squared


def yogi(v, squared, beta2):
    return v - (1 - beta2) * squared * np.sign(v - squared)


@pytest.mark.parametrize(("name", "rule_of_v"), [("adam", adam), ("yogi", yogi)])
@pytest.mark.parametrize("weights", ["uniform", "samples"])
@pytest.mark.parametrize("steps", [1, 3])
def test_rounds_of_a_network_are_those_of_the_algorithm(name, rule_of_v, weights, steps):
    settings = FederatedRounds.model_validate(
        {
            "name": "federated",
            "rounds": 15,
            "steps": steps,
            "batch_size": 8,
            "learning_rate": 0.3,
            "weights": weights,
            "server_optimizer": {name: {"learning_rate": 0.05}},
        }
    )
    mlp = chosen({"mlp": {"hidden": HIDDEN}})
    known = Knowledge(torch.ones(M, C, dtype=torch.int64), (1, 8, 8))
    start = rule(mlp).parameters(mlp, known, torch_generator(0, "start"))
    exact = {key: value.double() for key, value in start.items()}
    clients = {client: data(size, 10 + client) for client, size in enumerate((20, 6, 33))}
    samples = {
        client: Samples(torch.as_tensor(logits), torch.as_tensor(labels))
        for client, (logits, labels) in clients.items()
    }
    task = Task(combination(mlp), exact, samples, seed=4)
    done = federated.train(settings, task)
    batches = {
        client: [batch.numpy() for batch in federated._batches(settings, task, client)]
        for client in clients
    }
    begun = [exact["weight1"].numpy(), exact["weight2"].numpy()]
    expected = slow_rounds(begun, clients, settings, batches, rule_of_v)
    for key, value in zip(("weight1", "weight2"), expected, strict=True):
        np.testing.assert_allclose(done.parameters[key].numpy(), value, atol=1e-9)
