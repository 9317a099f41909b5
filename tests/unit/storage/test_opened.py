"""Tensors that stay in their file until they are taken."""

import os

import pytest
import torch

from fedstage.errors import FedstageError
from fedstage.storage.opened import open_tensors
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.weights import Deferred, Entry, renamed, shapes_of, together

TENSORS = {
    "w": torch.arange(6.0).reshape(2, 3),
    "half": torch.ones(4, dtype=torch.bfloat16),
    "count": torch.tensor(3),
    "none": torch.empty(0, 2),
    "flags": torch.tensor([True, False]),
}


@pytest.fixture
def path(tmp_path):
    save_tensors(tmp_path / "one.safetensors", TENSORS, {"round": 1})
    return tmp_path / "one.safetensors"


@pytest.mark.parametrize("kept", [0, 9, 2**20])
def test_they_are_those_of_the_file_however_many_stay_in_memory(path, kept):
    opened, metadata = open_tensors(path, kept)
    assert metadata == {"round": 1}
    assert opened.keys() == TENSORS.keys()
    for name, expected in load_tensors(path)[0].items():
        assert opened[name].dtype == expected.dtype
        assert torch.equal(opened[name], expected)
        assert shapes_of(opened)[name].nbytes == expected.nbytes


def test_deferred_tensors_are_written_as_the_same_bytes(path, tmp_path):
    opened, metadata = open_tensors(path, kept=0)
    save_tensors(tmp_path / "two.safetensors", opened, metadata)
    assert (tmp_path / "two.safetensors").read_bytes() == path.read_bytes()


def test_a_damaged_file_is_refused_before_a_tensor_is_taken(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(FedstageError, match="truncated or altered"):
        open_tensors(path)


def test_a_file_that_changed_since_it_was_opened_is_refused(path):
    opened, _ = open_tensors(path, kept=0)
    save_tensors(path, {name: value + 1 for name, value in TENSORS.items() if name == "w"})
    with pytest.raises(FedstageError, match="changed while it was read"):
        opened["w"]
    os.unlink(path)
    with pytest.raises(FedstageError, match="No such file"):
        opened["w"]


def test_a_tensor_is_made_when_it_is_taken_and_not_before():
    made = []

    def make():
        made.append(1)
        return torch.ones(2)

    deferred = Deferred({"a": Entry(torch.ones(2), make)})
    all_of_them = together({"b": torch.zeros(1)}, renamed(deferred, {"a": "c"}))
    assert shapes_of(all_of_them).keys() == {"b", "c"}
    assert made == []
    assert all_of_them["c"].tolist() == [1.0, 1.0]
    assert made == [1]
