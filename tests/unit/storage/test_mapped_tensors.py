"""Tensors that stay in their file: the same as those read, with pages that processes share."""

import sys

import pytest
import torch

from fedstage.errors import FedstageError
from fedstage.storage.tensors import load_tensors, map_tensors, save_tensors

TENSORS = {"images": torch.arange(48, dtype=torch.uint8).reshape(4, 12), "labels": torch.arange(4)}


@pytest.fixture
def path(tmp_path):
    save_tensors(tmp_path / "a.safetensors", TENSORS, {"round": 3})
    return tmp_path / "a.safetensors"


def test_mapped_tensors_are_those_that_are_read(path):
    mapped, notes = map_tensors(path)
    read, _ = load_tensors(path)
    assert notes == {"round": 3}
    assert mapped.keys() == read.keys()
    for name, tensor in read.items():
        assert mapped[name].dtype == tensor.dtype
        assert torch.equal(mapped[name], tensor), name


def file_behind(tensor):
    """Return the file that the memory of a tensor is mapped from, or what the system says."""
    place = tensor.data_ptr()
    with open("/proc/self/maps") as maps:
        for recipe in maps:
            span, *_, name = recipe.split(maxsplit=5)
            begin, end = (int(edge, 16) for edge in span.split("-"))
            if begin <= place < end:
                return name.strip()
    return None


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/maps")
def test_mapped_tensors_lie_in_the_file(path):
    mapped, _ = map_tensors(path)
    assert {file_behind(tensor) for tensor in mapped.values()} == {str(path)}
    assert str(path) not in {file_behind(tensor) for tensor in load_tensors(path)[0].values()}


def test_writing_to_a_mapped_tensor_leaves_the_file_as_it_was(path):
    before = path.read_bytes()
    mapped, _ = map_tensors(path)
    mapped["images"].zero_()
    assert path.read_bytes() == before
    assert torch.equal(map_tensors(path)[0]["images"], TENSORS["images"])


def test_mapped_tensors_outlive_a_new_file_in_their_place(path):
    mapped, _ = map_tensors(path)
    save_tensors(path, {"images": torch.zeros(2)})
    assert torch.equal(mapped["images"], TENSORS["images"])


def test_altered_or_truncated_files_are_not_mapped(path):
    raw = path.read_bytes()
    for altered in (raw[:-1], raw[:-1] + b"\xff", raw + b"\0", raw[:5], b""):
        path.write_bytes(altered)
        with pytest.raises(FedstageError, match=f"{path}: truncated or altered"):
            map_tensors(path)
