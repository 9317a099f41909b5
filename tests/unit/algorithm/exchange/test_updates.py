import pytest
import torch

from fedstage.algorithm.exchange.updates import answered, read_updates
from fedstage.storage.tensors import save_tensors


def written(folder, participant, tensors, **notes):
    path = folder / f"participant_{participant}.safetensors"
    save_tensors(path, tensors, {"participant": participant, "client": 10 + participant} | notes)
    return path


@pytest.fixture
def paths(tmp_path):
    value = torch.arange(3.0)
    both = {"model/conv.weight": value, "payload/conv.weight": -value, "model/bias": value + 1}
    return [
        written(tmp_path, 10, {"model/w": value}, samples=5),
        written(tmp_path, 2, {}, diverged_at=4),
        written(tmp_path, 0, both, loss=0.5),
    ]


def test_weights_and_payload_are_told_apart(paths):
    first, _, last = read_updates(paths)
    assert {name: value.tolist() for name, value in first.weights.items()} == {
        "conv.weight": [0, 1, 2],
        "bias": [1, 2, 3],
    }
    assert {name: value.tolist() for name, value in first.payload.items()} == {
        "conv.weight": [0, -1, -2]
    }
    assert set(last.weights) == {"w"}
    assert last.payload == {}


def test_those_who_diverged_did_not_answer(paths):
    updates = read_updates(paths)
    assert [update.diverged for update in updates] == [False, True, False]
    assert updates[1].weights == updates[1].payload == {}
    assert [update.metadata["participant"] for update in answered(updates)] == [0, 10]
    assert answered(updates[1:2]) == []
