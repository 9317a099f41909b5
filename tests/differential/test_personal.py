"""Parts of models that stay with clients, and Ditto, against plain loops over clients."""

from pathlib import Path

import pytest
import torch
from tests.shared.recipes import FEDDF
from tests.shared.settings import distilled
from tests.shared.stages import make_all
from torch import nn

from fedstage.algorithm.exchange.updates import read_updates
from fedstage.data.samples import read_counts, read_info, read_labelled, read_samples
from fedstage.models.loading import build
from fedstage.plan import data_files
from fedstage.plan.scores import evaluation
from fedstage.plan.training import aggregation, global_model, updates
from fedstage.randomness import torch_generator
from fedstage.settings.models import CnnSmall
from fedstage.settings.recipes import Recipe
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import load_tensors
from fedstage.training.batches import client_batches

CLIENTS, ROUNDS, SHAPE = 4, 2, (1, 8, 8)
HEAD = ("linear2.weight", "linear2.bias")
NORM = tuple(
    f"norm{layer}.{name}"
    for layer in (1, 2)
    for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
)
#: What each method keeps with clients, its norm, epochs of the head alone, and lambda.
METHODS = {
    "FedPer": ({"personal": "head"}, "group", HEAD, 0, None),
    "FedRep": ({"personal": {"parts": "head", "epochs": 2}}, "group", HEAD, 2, None),
    "FedBN": ({"personal": "norm"}, "batch", NORM, 0, None),
    "SiloBN": ({"aggregation": {"batch_norm": "local"}}, "batch",
               [name for name in NORM if "_" in name], 0, None),
    "Ditto": ({"local": {"ditto": {"strength": 0.5}}}, "group", (), 0, 0.5),
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def recipe(changes, norm):
    given = {
        "model": {"name": "cnn_small", "width": 2, "hidden": 5, "norm": norm},
        "participants": CLIENTS,
        "numerics": {"device": "cpu"},
    }
    return Recipe.model_validate(distilled(**given) | changes)


def descend(network, batches, pixels, labels, rate, names=None, near=None, strength=0.0):
    """Take the steps of SGD on some parameters, near other values of them."""
    network.train()
    chosen = [(n, p) for n, p in network.named_parameters() if names is None or n in names]
    for batch in batches:
        loss = nn.functional.cross_entropy(network(pixels[batch]), labels[batch])
        slopes = torch.autograd.grad(loss, [parameter for _, parameter in chosen])
        for (name, parameter), slope in zip(chosen, slopes, strict=True):
            if near is not None:
                slope = slope + strength * (parameter.detach() - near[name])
            parameter.data -= rate * slope


def copied(network):
    return {name: value.clone() for name, value in network.state_dict().items()}


class Clients:
    """The samples and batches that the stages give clients."""

    def __init__(self, chosen):
        self.chosen, self.info = chosen, read_info(Path(data_files.info(chosen)))
        self.data = Path(data_files.samples_file(chosen, "train"))

    def pixels(self, images):
        return (images.float() / 255 - self.info["mean"][0]) / self.info["std"][0]

    def of(self, client):
        own = read_samples(Path(data_files.clients_table(self.chosen)), "train", client)
        images, labels = read_labelled(self.data, own, torch.device("cpu"), self.info)
        return self.pixels(images), labels

    def batches(self, round_, client, count, *purpose, **changes):
        key = torch_generator(
            self.chosen.seed, "local_training", round_, client, *purpose, "batches"
        )
        return client_batches(count, self.chosen.client.model_copy(update=changes), key)


def by_loops(chosen, kept, epochs, strength):
    """Return the last global model and the clients' own parts, or models, by plain loops."""
    world, rate = Clients(chosen), chosen.client.learning_rate
    network = build(CnnSmall.model_validate(chosen.model.model_dump()), SHAPE, 10)
    start, _ = load_tensors(global_model(chosen, 0, 0))
    own = [{} for _ in range(CLIENTS)]
    for round_ in range(1, ROUNDS + 1):
        sums, total = dict.fromkeys(start, 0.0), 0
        for client in range(CLIENTS):
            pixels, labels = world.of(client)
            batches = world.batches(round_, client, len(labels))
            if strength is not None:
                network.load_state_dict(own[client] or start)
                descend(network, batches, pixels, labels, rate, None, start, strength)
                own[client] = copied(network)
            network.load_state_dict(start if strength is not None else start | own[client])
            if epochs:
                first = world.batches(
                    round_, client, len(labels), "personal", epochs=epochs, steps=None
                )
                descend(network, first, pixels, labels, rate, kept)
            rest = {*start} - {*kept} if epochs else None
            descend(network, batches, pixels, labels, rate, rest)
            end = copied(network)
            if strength is None:
                own[client] = {name: end[name] for name in kept}
            for name in start:
                sums[name] = sums[name] + len(labels) * end[name].double()
            total += len(labels)
        start = {
            name: value if name in kept else (sums[name] / total).to(value.dtype)
            for name, value in start.items()
        }
    return start, own


@pytest.mark.parametrize(("changes", "norm", "kept", "epochs", "strength"), METHODS.values(),
                         ids=METHODS)  # fmt: skip
def test_models_and_scores_are_those_of_plain_loops(changes, norm, kept, epochs, strength):
    chosen = recipe(changes, norm)
    scores = evaluation(chosen, "own_models", "test", ROUNDS, ROUNDS)
    make_all(scores)
    expected, own = by_loops(chosen, kept, epochs, strength)
    ours, _ = load_tensors(global_model(chosen, ROUNDS, 0))
    for name, value in expected.items():
        assert torch.allclose(ours[name].double(), value.double(), atol=2e-6), name
    for update in read_updates([Path(one) for one in updates(chosen, ROUNDS, 0)]):
        found = update.kept if strength is not None else update.weights
        for name, value in own[update.metadata["client"]].items():
            assert torch.allclose(found[name].double(), value.double(), atol=2e-6), name
    sent = sum(value.nbytes for name, value in expected.items() if name not in kept)
    table = load_table(aggregation(chosen, ROUNDS, 0, output="participants")).to_pydict()
    assert {*table["bytes_up"], *table["bytes_down"]} == {sent}

    network = build(CnnSmall.model_validate(chosen.model.model_dump()), SHAPE, 10).eval()
    world = Clients(chosen)
    test = Path(data_files.data_file(chosen.data, "test"))
    images, labels = read_labelled(test, None, torch.device("cpu"), world.info)
    counts = read_counts(Path(data_files.scored_samples(chosen)["histogram"]))
    plain, mixed = [], []
    for client in range(CLIENTS):
        network.load_state_dict(expected | own[client])
        with torch.no_grad():
            right = (network(world.pixels(images)).argmax(1) == labels).double()
        plain.append(float(right.mean()))
        mix = counts[client]
        accuracies = {label: float(right[labels == label].mean()) for label in mix}
        mixed.append(sum(n * accuracies[label] for label, n in mix.items()) / sum(mix.values()))
    (row,) = load_table(scores).to_pylist()
    assert row["top1_accuracy"] == pytest.approx(100 * sum(plain) / CLIENTS)
    assert row["own_mean"] == pytest.approx(100 * sum(mixed) / CLIENTS)


@pytest.mark.parametrize("changes", [{"personal": "head"}, {"local": "ditto"}], ids=str)
def test_what_would_need_personal_models_elsewhere_is_refused(changes):
    with pytest.raises(ValueError, match="needs updates of one model"):
        recipe(FEDDF | changes, "group")
