"""The generalised framework (FedEED, Algorithm 1) against itself by hand, in float64 NumPy.

Softmax regression on digits, in whole batches, so that no order of batches counts: the stages of a
line are called along the graph, and every model that they write is compared.
"""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.shared.graph import teaching_logits
from tests.shared.stages import initial_model, logits_segment, participation, partition, segment

from fedstage.plan import data_files
from fedstage.plan.digests import as_json, canonical
from fedstage.plan.taught import is_distilled
from fedstage.plan.training import AGGREGATION, aggregated_model, global_model
from fedstage.plan.training_folder import training_folder
from fedstage.randomness import numpy_generator, torch_generator
from fedstage.settings.equivalences import simplest
from fedstage.settings.groups import group_slots
from fedstage.settings.lines import Line
from fedstage.stages.dataset import dataset
from fedstage.stages.line import line as write_line
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


def a_line(**changes):
    return simplest(Line.model_validate(BASE | changes))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with all that rounds start from."""
    folder = tmp_path_factory.mktemp("framework")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        line = a_line()
        parts = ("train", "test", "held_out", "server_validation", "info")
        files = {part: Path(data_files.data_file(line.data, part)) for part in parts}
        dataset(settings=as_json(canonical(line.data)), **files)
        partition(
            settings=json.dumps(data_files.clients_table(line).job.settings), train=files["train"],
            output=Path(data_files.clients_table(line)),
            histogram=Path(data_files.label_histogram(line)),
        )  # fmt: skip
        for participants in (1, 5):
            plan = Path(data_files.participation_table(a_line(participants=participants), 1))
            participation(
                clients=6, participants=participants, seed=4, first=1, last=100, output=plan
            )
        settings = as_json({"model": canonical(line.model), "seed": 4})
        for group in range(3):
            output = Path(data_files.initial_model(line.data, line.model, 4, group))
            initial_model(settings=settings, group=group, info=files["info"], output=output)
    return folder


# --- by the stages --------------------------------------------------------------------------------


def read(path):
    tensors, _ = load_tensors(path)
    return [tensors[name].double().numpy() for name in NAMES]


def run_round(line, round):
    """Train groups that other lines own in segments of theirs, and then the students."""
    groups = range(line.global_models)
    students = [group for group in groups if is_distilled(line, round, group)]
    others = [group for group in groups if AGGREGATION.job(line, round, group).config != line]
    for group in others:
        segment(
            line=written(AGGREGATION.job(line, round, group).config),
            first=round,
            last=round,
            groups=[group],
        )
        for members, images in teaching_logits(line) if students else ():
            logits_segment(
                line=written(line), rounds=[round], group=group, members=members, images=images
            )
    own = [group for group in groups if group in students or group not in others]
    segment(line=written(line), first=round, last=round, groups=own)


def written(line):
    """Return the file of a line's settings, once it is written."""
    path = Path(f"{training_folder(line)}/line.yaml")
    if not path.exists():
        write_line(settings=as_json(canonical(line)), output=path)
    return path


def run(line, read=read):
    """Call the stages of all rounds; return w_{t,k} and w*_{t,k}."""
    groups, found = range(line.global_models), {}
    for round in range(1, ROUNDS + 1):
        run_round(line, round)
        for group in groups:
            found["aggregated", round, group] = read(aggregated_model(line, round, group))
            found["global", round, group] = read(global_model(line, round, group))
    return found


# --- by hand --------------------------------------------------------------------------------------


def pixels(line, part):
    info = load_json(data_files.data_file(line.data, "info"))
    tensors, _ = load_tensors(data_files.data_file(line.data, part))
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


def distillation(w, x, teacher, line):
    """Descend tau^2 KL(sigma_tau(s z), sigma_tau(f)); the weights after each step."""
    server, steps = line.server, []
    tau = server.temperature
    scale = tau if server.tau_squared else 1 / tau
    for _ in range(server.steps):
        target = softmax(teacher * server.sharpening / tau)
        wrong = scale * (softmax(logits(w, x) / tau) - target) / len(x)
        rate = server.learning_rate
        w = [w[0] - rate * wrong.T @ x, w[1] - rate * wrong.sum(0)]
        steps.append(w)
    return steps


def teacher_of(line, members, x):
    """Average logits, or probabilities, of (model, weight) pairs."""
    total = sum(weight for _, weight in members)
    if line.ensemble.average == "probabilities":
        return np.log(sum(weight * softmax(logits(w, x)) for w, weight in members) / total)
    return sum(weight * logits(w, x) for w, weight in members) / total


def drawn(line, round, group, models, samples, average, start):
    """Draw from the clients of a group, with the noise that the stage takes."""
    ensemble, found = line.ensemble, []
    for number in range(ensemble.samples):
        key = (line.seed, "logits", round, group, ensemble.distribution, number)
        if ensemble.distribution == "dirichlet":
            a = [ensemble.concentration] * len(models)
            found.append(mean(models, numpy_generator(*key).dirichlet(a)))
            continue
        generator = torch_generator(*key)
        noise = [torch.randn(w.shape, generator=generator, dtype=torch.float64) for w in average]
        found.append([
            draw_one(line, [model[i] for model in models], samples, start[i], noise[i].numpy())
            for i in (0, 1)
        ])  # fmt: skip
    return found


def draw_one(line, values, samples, start, noise):
    if line.ensemble.variant == "as_published":
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


def by_hand(line):
    """Algorithm 1 without files, groups in lists; return what `run` does."""
    tables = load_table(data_files.clients_table(line)).to_pylist()
    plan = load_table(data_files.participation_table(line, 1)).to_pylist()
    x, y = pixels(line, "train")
    public, _ = pixels(line, "held_out")
    own, own_labels = pixels(line, "server_validation")
    groups = range(line.global_models)
    w = [read(data_files.initial_model(line.data, line.model, line.seed, k)) for k in groups]
    buffer, found = [], {}
    for round in range(1, ROUNDS + 1):
        who = {row["slot"]: row["client"] for row in plan if row["round"] == round}
        updates, samples = [], []
        for k in groups:
            clients = [who[slot] for slot in group_slots(line, k)]
            data = [[r["sample"] for r in tables if r["client"] == client] for client in clients]
            updates.append([local_training(w[k], x[rows], y[rows]) for rows in data])
            samples.append([len(rows) for rows in data])
        starts, w = w, [mean(updates[k], samples[k]) for k in groups]
        buffer.append(list(w))
        found |= {("aggregated", round, k): w[k] for k in groups}
        trainer = line.global_trainer
        if trainer is not None and round > trainer.warm_up:
            students = groups if trainer.name == "basic" else [0]
            everyone = [(u, n) for k in groups for u, n in zip(updates[k], samples[k], strict=True)]
            begin = list(w)
            if line.ensemble.name == "clients":
                if line.server.drop_worst == "as_published":
                    right = partial(beats_chance, own, own_labels)
                    everyone = [(u, n) for u, n in everyone if right(u)]
                    for k in students:
                        pairs = zip(updates[k], samples[k], strict=True)
                        left = [(u, n) for u, n in pairs if right(u)]
                        begin[k] = mean(*zip(*left, strict=True)) if left else w[k]
                by_samples = line.ensemble.weights == "samples"
                members = [(u, n if by_samples else 1) for u, n in everyone]
            elif line.ensemble.name == "aggregated":
                members = [(u, 1) for past in buffer[-line.ensemble.checkpoints :] for u in past]
            else:
                members = [(u, 1) for u, _ in everyone] + [(u, 1) for u in w]
                for k in groups:
                    ask = (round, k, updates[k], samples[k], w[k], starts[k])
                    members += [(u, 1) for u in drawn(line, *ask)]
            teacher = teacher_of(line, members, public)
            for k in students:
                steps = distillation(begin[k], public, teacher, line)
                if line.server.swa is not None:
                    first, every = line.server.swa.start, line.server.swa.every
                    counted = steps[first + every - 1 :: every]
                    w[k] = mean(counted, [1] * len(counted))
                else:
                    w[k] = steps[-1]
        found |= {("global", round, k): w[k] for k in groups}
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
        "ensemble": {"bayesian": {"distribution": "dirichlet", "concentration": 0.5}}, **BASIC,
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
    line = a_line(**method)
    ours, expected = run(line), by_hand(line)
    assert ours.keys() == expected.keys()
    for key, model in expected.items():
        for found, wanted in zip(ours[key], model, strict=True):
            assert np.allclose(found, wanted, rtol=1e-4, atol=1e-5), key


def test_the_worst_were_left_out_of_the_comparison_above(world, monkeypatch):
    """Else it would have compared FedDF with itself."""
    monkeypatch.chdir(world)
    line = a_line(**METHODS["FedDF without the worst"])
    run(line)
    models = [global_model(line, round, 0) for round in range(1, ROUNDS + 1)]
    dropped = [load_tensors(path)[1]["dropped"] for path in models]
    assert 0 < dropped[0] < line.participants


def test_one_participant_of_one_group_is_its_own_teacher_whoever_is_asked(world, monkeypatch):
    """K = R = 1: FedDF and FedSDD are one method, self-distillation of FedAvg."""
    monkeypatch.chdir(world)
    alone = {"participants": 1, "model": {"cnn_small": {"width": 2, "hidden": 6, "norm": "batch"}}}
    initial = a_line(**alone)
    output = Path(data_files.initial_model(initial.data, initial.model, 4, 0))
    settings = as_json({"model": canonical(initial.model), "seed": 4})
    info = Path(data_files.data_file(initial.data, "info"))
    initial_model(settings=settings, group=0, info=info, output=output)
    found = []
    for method in ({"ensemble": "clients", **BASIC}, METHODS["FedSDD of one participant"]):
        found.append(run(a_line(**alone | method), lambda path: load_tensors(path)[0]))
    for key in found[0]:
        assert all(torch.equal(found[0][key][n], found[1][key][n]) for n in found[0][key]), key
    moved = found[0]["global", 1, 0], found[0]["aggregated", 1, 0]
    assert not torch.equal(*(model["linear2.weight"] for model in moved))
