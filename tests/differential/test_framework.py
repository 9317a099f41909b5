"""The generalised framework (FedEED, Algorithm 1) against itself by hand, in float64 NumPy.

Softmax regression on digits, in whole batches, so that no order of batches counts: the stages of a
recipe are called along the graph, and every model that they write is compared.
"""

from functools import partial

import numpy as np
import pytest
import torch
from tests.shared.stages import make_all

from fedstage.plan import data_files
from fedstage.plan.training import aggregated_model, global_model
from fedstage.protocol.groups import group_participants
from fedstage.randomness import numpy_generator, torch_generator
from fedstage.settings.equivalences import simplest
from fedstage.settings.recipes import Recipe
from fedstage.storage.files import load_json
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import load_tensors

NAMES = ("linear.weight", "linear.bias")
CLASSES, ROUNDS = 10, 3
CLIENT = {"epochs": 3, "batch_size": 2000, "learning_rate": 0.2}
SERVER = {"steps": 4, "batch_size": 2000, "learning_rate": 0.05, "temperature": 2.0}
BASE = {
    "data": {"digits": {"test": 1200, "held_out": 60, "server_validation": 40}},
    "clients": 6,
    "partition": {"dirichlet": {"alpha": 0.05, "min_samples": 5}},
    "participants": 5,
    "model": "logistic_regression",
    "client": CLIENT,
    "server": SERVER,
    "numerics": {"device": "cpu"},
    "seed": 4,
}


def a_recipe(**changes):
    return simplest(Recipe.model_validate(BASE | changes))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder that recipes share."""
    return tmp_path_factory.mktemp("framework")


# --- by the stages --------------------------------------------------------------------------------


def read(path):
    tensors, _ = load_tensors(path)
    return [tensors[name].double().numpy() for name in NAMES]


def run(recipe, read=read):
    """Run the stages of all rounds; return w_{t,k} and w*_{t,k}."""
    places = [(round_, group) for round_ in range(1, ROUNDS + 1)
              for group in range(recipe.global_models)]  # fmt: skip
    kinds = {"aggregated": aggregated_model, "global": global_model}
    files = {(kind, *at): find(recipe, *at) for kind, find in kinds.items() for at in places}
    make_all(*files.values())
    return {key: read(file) for key, file in files.items()}


# --- by hand --------------------------------------------------------------------------------------


def pixels(recipe, part):
    info = load_json(data_files.data_file(recipe.data, "info"))
    tensors, _ = load_tensors(data_files.data_file(recipe.data, part))
    flat = tensors["images"].numpy().reshape(len(tensors["images"]), -1).astype(np.float64)
    x = (flat / 255 - info["mean"][0]) / info["std"][0]
    return x, (tensors["labels"].numpy() if "labels" in tensors else None)


def logits(w, x):
    return x @ w[0].T + w[1]


def softmax(z):
    odds = np.exp(z - z.max(1, keepdims=True))
    return odds / odds.sum(1, keepdims=True)


def mean(models, weights):
    shares = np.array(weights, dtype=float) / sum(weights)
    return [sum(s * model[i] for s, model in zip(shares, models, strict=True)) for i in (0, 1)]


def local_training(w, x, y):
    for _ in range(CLIENT["epochs"]):
        wrong = (softmax(logits(w, x)) - np.eye(CLASSES)[y]) / len(x)
        w = [w[0] - CLIENT["learning_rate"] * wrong.T @ x, w[1] - 0.2 * wrong.sum(0)]
    return w


def distillation(w, x, teacher, recipe):
    """Descend tau^2 KL(sigma_tau(s z), sigma_tau(f)); the weights after each step."""
    server, steps = recipe.server, []
    tau = server.temperature
    scale = tau if server.tau_squared else 1 / tau
    for _ in range(server.steps):
        target = softmax(teacher * server.sharpening / tau)
        wrong = scale * (softmax(logits(w, x) / tau) - target) / len(x)
        rate = server.learning_rate
        w = [w[0] - rate * wrong.T @ x, w[1] - rate * wrong.sum(0)]
        steps.append(w)
    return steps


def teacher_of(recipe, members, x):
    """Average logits, or probabilities, of (model, weight) pairs."""
    total = sum(weight for _, weight in members)
    if recipe.ensemble.average == "probabilities":
        return np.log(sum(weight * softmax(logits(w, x)) for w, weight in members) / total)
    return sum(weight * logits(w, x) for w, weight in members) / total


def drawn(recipe, round_, group, models, samples, average, start):
    """Draw from the clients of a group, with the noise that the stage takes."""
    ensemble, found = recipe.ensemble, []
    for number in range(ensemble.samples):
        key = (recipe.seed, "logits", round_, group, ensemble.distribution, number)
        if ensemble.distribution == "dirichlet":
            gamma = numpy_generator(*key).dirichlet([1.0] * len(models))
            found.append(mean(models, gamma))
            continue
        generator = torch_generator(*key)
        noise = [torch.randn(w.shape, generator=generator, dtype=torch.float64) for w in average]
        found.append([
            draw_one(recipe, [model[i] for model in models], samples, start[i], noise[i].numpy())
            for i in (0, 1)
        ])  # fmt: skip
    return found


def draw_one(recipe, values, samples, start, noise):
    if recipe.ensemble.variant == "as_published":
        p = np.array(samples) / sum(samples)
        middle = sum(s * v for s, v in zip(p, values, strict=True))
        return middle + noise * np.sqrt(
            sum(s * (v - middle) ** 2 for s, v in zip(p, values, strict=True))
        )
    lengths = [np.linalg.norm(v - start) for v in values]
    units = [(v - start) / n for v, n in zip(values, lengths, strict=True)]
    middle = np.mean(units, axis=0)
    spread = np.maximum(np.mean(np.square(units), axis=0) - middle**2, 1e-5)
    return start + np.mean(lengths) * (middle + 0.1 * np.sqrt(spread) * noise)


def by_hand(recipe):
    """Algorithm 1 without files, groups in lists; return what `run` does."""
    tables = load_table(data_files.clients_table(recipe)).to_pylist()
    plan = load_table(data_files.participation_table(recipe, 1)).to_pylist()
    x, y = pixels(recipe, "train")
    public, _ = pixels(recipe, "held_out")
    own, own_labels = pixels(recipe, "server_validation")
    groups = range(recipe.global_models)
    w = [
        read(data_files.initial_weights(recipe.data, recipe.model, recipe.seed, k)) for k in groups
    ]
    buffer, found = [], {}
    for round_ in range(1, ROUNDS + 1):
        who = {row["participant"]: row["client"] for row in plan if row["round"] == round_}
        updates, samples = [], []
        for k in groups:
            clients = [who[participant] for participant in group_participants(recipe, k)]
            data = [[r["sample"] for r in tables if r["client"] == client] for client in clients]
            updates.append([local_training(w[k], x[rows], y[rows]) for rows in data])
            samples.append([len(rows) for rows in data])
        starts, w = w, [mean(updates[k], samples[k]) for k in groups]
        buffer.append(list(w))
        found |= {("aggregated", round_, k): w[k] for k in groups}
        trainer = recipe.global_trainer
        if trainer is not None and round_ > trainer.warm_up:
            students = groups if trainer.name == "basic" else [0]
            everyone = [(u, n) for k in groups for u, n in zip(updates[k], samples[k], strict=True)]
            begin = list(w)
            if recipe.ensemble.name == "clients":
                if recipe.server.drop_worst == "as_published":
                    right = partial(beats_chance, own, own_labels)
                    everyone = [(u, n) for u, n in everyone if right(u)]
                    for k in students:
                        pairs = zip(updates[k], samples[k], strict=True)
                        left = [(u, n) for u, n in pairs if right(u)]
                        begin[k] = mean(*zip(*left, strict=True)) if left else w[k]
                by_samples = recipe.ensemble.weights == "samples"
                members = [(u, n if by_samples else 1) for u, n in everyone]
            elif recipe.ensemble.name == "aggregated":
                members = [(u, 1) for past in buffer[-recipe.ensemble.checkpoints :] for u in past]
            else:
                members = [(u, 1) for u, _ in everyone] + [(u, 1) for u in w]
                for k in groups:
                    ask = (round_, k, updates[k], samples[k], w[k], starts[k])
                    members += [(u, 1) for u in drawn(recipe, *ask)]
            teacher = teacher_of(recipe, members, public)
            for k in students:
                steps = distillation(begin[k], public, teacher, recipe)
                if recipe.server.swa is not None:
                    first, every = recipe.server.swa.start, recipe.server.swa.every
                    counted = steps[first + every - 1 :: every]
                    w[k] = mean(counted, [1] * len(counted))
                else:
                    w[k] = steps[-1]
        found |= {("global", round_, k): w[k] for k in groups}
    return found


def beats_chance(x, y, w):
    return np.mean(logits(w, x).argmax(1) == y) > 1 / CLASSES


# --- the same -------------------------------------------------------------------------------------

BASIC = {"global": "basic"}
METHODS = {
    "FedAvg": {},
    "Fed-ensemble": {"global_models": 3},
    "FedDF": {"ensemble": "clients", **BASIC},
    "FedDF by samples": {"ensemble": {"clients": {"weights": "samples"}}, **BASIC},
    "FedDF without the worst": {
        "ensemble": "clients", "server": SERVER | {"drop_worst": "as_published"}, **BASIC,
    },
    "two groups without the worst": {
        "ensemble": "clients", "global_models": 2,
        "server": SERVER | {"drop_worst": "as_published"}, **BASIC,
    },
    "FedBE": {
        "ensemble": {"bayesian": {"samples": 3, "average": "probabilities"}},
        "server": SERVER | {"swa": {"start": 1, "every": 2}, "steps": 6}, **BASIC,
    },
    "FedBE, Dirichlet": {
        "ensemble": {"bayesian": {"distribution": "dirichlet"}}, **BASIC,
    },
    "FedBE as released": {
        "ensemble": {
            "bayesian": {"variant": "as_released", "samples": 2, "average": "probabilities"}
        },
        "server": SERVER | {"sharpening": 2.0, "temperature": 1.0, "tau_squared": False}, **BASIC,
    },
    "basic with warm-up": {
        "global_models": 2, "ensemble": "aggregated", "global": {"basic": {"warm_up": 1}},
    },
    "FedSDD of one participant": {
        "participants": 1, "ensemble": "aggregated", "global": "designated",
    },
    "FedSDD": {"global_models": 3, "ensemble": "aggregated", "global": "designated"},
    "FedSDD, R = 2": {
        "global_models": 2, "ensemble": {"aggregated": {"checkpoints": 2}},
        "global": "designated",
    },
    "Bayesian teacher of two groups": {
        "global_models": 2, "ensemble": {"bayesian": {"variant": "as_released", "samples": 2}},
        "global": "designated",
    },
}  # fmt: skip


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_methods_are_algorithm_1_by_hand(world, monkeypatch, method):
    monkeypatch.chdir(world)
    recipe = a_recipe(**method)
    ours, expected = run(recipe), by_hand(recipe)
    assert ours.keys() == expected.keys()
    for key, model in expected.items():
        for found, wanted in zip(ours[key], model, strict=True):
            assert np.allclose(found, wanted, rtol=1e-4, atol=1e-5), key


def test_the_worst_were_left_out_of_the_comparison_above(world, monkeypatch):
    """Else it would have compared FedDF with itself."""
    monkeypatch.chdir(world)
    recipe = a_recipe(**METHODS["FedDF without the worst"])
    run(recipe)
    models = [global_model(recipe, round_, 0) for round_ in range(1, ROUNDS + 1)]
    dropped = [load_tensors(path)[1]["dropped"] for path in models]
    assert 0 < dropped[0] < recipe.participants


def test_one_participant_of_one_group_is_its_own_teacher_whoever_is_asked(world, monkeypatch):
    """K = R = 1: FedDF and FedSDD are one method, self-distillation of FedAvg."""
    monkeypatch.chdir(world)
    alone = {"participants": 1, "model": {"cnn_small": {"width": 2, "hidden": 6, "norm": "batch"}}}
    found = []
    for method in ({"ensemble": "clients", **BASIC}, METHODS["FedSDD of one participant"]):
        found.append(run(a_recipe(**alone | method), lambda path: load_tensors(path)[0]))
    for key in found[0]:
        assert all(torch.equal(found[0][key][n], found[1][key][n]) for n in found[0][key]), key
    moved = found[0]["global", 1, 0], found[0]["aggregated", 1, 0]
    assert not torch.equal(*(model["linear2.weight"] for model in moved))
