"""Aggregation against exact fractions, and the stage against files written by hand."""

import json
from fractions import Fraction

import pytest
import torch
from tests.shared.stages import aggregation, recipe

from fedstage.algorithm.aggregation.averages import average_weights
from fedstage.algorithm.exchange.traffic import payload_bytes
from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.models import CnnSmall
from fedstage.storage.files import save_json
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import load_tensors, save_tensors

SAMPLES = [7, 31, 12]


def state(client):
    """A network with batch normalisation whose statistics and counters differ by client."""
    settings = CnnSmall(name="cnn_small", width=2, hidden=4, norm="batch")
    network = build(settings, (1, 8, 8), 3)
    generator = torch_generator(client, "weights")
    initialise(network, generator)
    for name, buffer in network.named_buffers():
        if buffer.dtype.is_floating_point:
            buffer.uniform_(0.1, 3.0, generator=generator)
        else:
            buffer.fill_([11, 40, 2][client % 3])
        assert "norm" in name
    return {name: value.clone() for name, value in network.state_dict().items()}


def exact_average(tensors, weights):
    """Average element by element in exact fractions, rounded once to the tensors' type."""
    total = sum(Fraction(weight) for weight in weights)
    flat = [tensor.flatten().tolist() for tensor in tensors]
    means = [
        sum(Fraction(w) * Fraction(x) for w, x in zip(weights, column, strict=True)) / total
        for column in zip(*flat, strict=True)
    ]
    kind = tensors[0].dtype
    values = [float(mean) if kind.is_floating_point else round(mean) for mean in means]
    return torch.tensor(values, dtype=kind).view(tensors[0].shape)


def one_bit_apart(a, b):
    """Whether floats differ by one unit in the last place at most."""
    return torch.allclose(a.double(), b.double(), rtol=2**-23, atol=0)


@pytest.mark.parametrize("weights", [SAMPLES, [1.0, 1.0, 1.0], [0.2, 0.5, 0.3]], ids=str)
def test_average_is_the_exact_one(weights):
    models = [state(client) for client in range(3)]
    average = average_weights(models, weights)
    assert list(average) == list(models[0])
    for name, value in average.items():
        expected = exact_average([model[name] for model in models], weights)
        assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
        assert one_bit_apart(value, expected), name


def test_one_model_is_its_own_average_bit_for_bit():
    model = state(0)
    average = average_weights([model], [17])
    assert all(torch.equal(average[name], model[name]) for name in model)


def test_models_are_left_alone():
    models = [state(client) for client in range(3)]
    average_weights(models, SAMPLES)["conv1.weight"].zero_()
    for client, model in enumerate(models):
        assert all(torch.equal(value, state(client)[name]) for name, value in model.items())


def test_payload_bytes_by_hand():
    first = {"a": torch.zeros(2, 3), "b": torch.zeros((), dtype=torch.int64)}
    second = {"a": torch.zeros(5, dtype=torch.float64), "c": torch.zeros(7, dtype=torch.uint8)}
    assert payload_bytes(first) == 2 * 3 * 4 + 8
    assert payload_bytes(first, second) == 32 + 40 + 7
    assert payload_bytes({}) == 0


# --- the stage, from files written by hand ------------------------------------------------------

SETTINGS = {
    "data": "digits",
    "clients": 5,
    "partition": "iid",
    "participants": 3,
    "model": {"cnn_small": {"width": 2, "hidden": 4, "norm": "batch"}},
    "client": {"learning_rate": 0.1, "batch_size": 4, "epochs": 1},
    "seed": 0,
    "on_divergence": "drop",
}


def aggregated(folder, diverged=(), **changes):
    """Write updates of clients 4, 2, 0 in participants 0, 1, 2 and aggregate them."""
    save_json(folder / "info.json", {"shape": [1, 8, 8], "classes": 3})
    recipe(settings=json.dumps(SETTINGS | changes), output=folder / "recipe.yaml")
    save_tensors(folder / "start.safetensors", state(5))
    updates = []
    for participant, client in enumerate((4, 2, 0)):
        about = {
            "round": 3,
            "group": 1,
            "participant": participant,
            "client": client,
            "samples": SAMPLES[participant],
        }
        dropped = participant in diverged
        notes = {"diverged_at": 6} if dropped else {"steps": 9, "loss": 0.5}
        model = {} if dropped else {f"model/{name}": v for name, v in state(participant).items()}
        updates.append(folder / f"participant_{participant}.safetensors")
        save_tensors(updates[-1], model, about | notes)
    aggregation(
        recipe=folder / "recipe.yaml",
        info=folder / "info.json",
        start=folder / "start.safetensors",
        updates=updates,
        output=folder / "aggregated.safetensors",
        participants=folder / "participants.parquet",
    )
    weights, notes = load_tensors(folder / "aggregated.safetensors")
    return weights, notes, load_table(folder / "participants.parquet").to_pylist()


@pytest.mark.parametrize("kind", ["samples", "uniform"])
@pytest.mark.parametrize("diverged", [(), (1,), (0, 2)], ids=str)
def test_stage_averages_those_who_answered(tmp_path, kind, diverged):
    weights, notes, rows = aggregated(tmp_path, diverged, aggregation={"weights": kind})
    valid = [participant for participant in range(3) if participant not in diverged]
    shares = [SAMPLES[participant] if kind == "samples" else 1 for participant in valid]
    for name, value in weights.items():
        expected = exact_average([state(participant)[name] for participant in valid], shares)
        assert one_bit_apart(value, expected), name
    assert notes == {
        "round": 3,
        "group": 1,
        "samples": sum(SAMPLES[participant] for participant in valid),
    }
    assert [row["dropped"] for row in rows] == [participant in diverged for participant in range(3)]


def test_stage_without_an_answer_keeps_the_start_model(tmp_path):
    weights, notes, rows = aggregated(tmp_path, diverged=(0, 1, 2))
    start = state(5)
    assert weights.keys() == start.keys()
    assert all(torch.equal(weights[name], start[name]) for name in start)
    assert notes["samples"] == 0
    assert [(row["steps"], row["loss"], row["bytes_up"]) for row in rows] == [(6, None, 0)] * 3
    assert [row["samples"] for row in rows] == SAMPLES
