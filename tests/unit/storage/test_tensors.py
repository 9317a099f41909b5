"""Tensors in files: read at once, mapped, or one by one when they are taken."""

import hashlib
import math
import sys
from itertools import product

import pytest
import torch
from safetensors.torch import save_file

from fedstage.errors import FedstageError
from fedstage.storage.tensors import load_tensors, map_tensors, open_tensors, save_tensors
from fedstage.weights import Deferred, Entry, renamed, shapes_of, together

TENSORS = {
    "conv.weight": torch.arange(24.0).reshape(2, 3, 4) / 7,
    "labels": torch.tensor([3, -1, 2]),
    "images": torch.arange(12, dtype=torch.uint8).reshape(3, 4),
    "half": torch.tensor([0.1, math.inf], dtype=torch.bfloat16),
    "flags": torch.tensor([True, False]),
    "number": torch.tensor(7),
    "nothing": torch.zeros(0, 5),
}
NOTES = {"round": 3, "loss": 0.1, "name": "ä", "list": [1, None], "open": None}
READERS = (load_tensors, map_tensors, open_tensors)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.safetensors"
    save_tensors(path, TENSORS, NOTES)
    return path


def refusal(load, path):
    with pytest.raises(FedstageError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize("load", READERS)
def test_tensors_and_notes_come_back_as_they_were(path, load):
    tensors, notes = load(path)
    assert notes == NOTES
    assert set(tensors) == set(TENSORS)
    for name, tensor in TENSORS.items():
        assert tensors[name].dtype == shapes_of(tensors)[name].dtype == tensor.dtype
        assert tensors[name].shape == shapes_of(tensors)[name].shape == tensor.shape
        assert torch.equal(tensors[name], tensor), name


def test_odd_tensors_come_back(tmp_path):
    save_tensors(tmp_path / "a", {"x": torch.tensor([math.nan])}, {"loss": math.nan})
    tensors, notes = load_tensors(tmp_path / "a")
    assert math.isnan(tensors["x"].item())
    assert math.isnan(notes["loss"])
    save_tensors(tmp_path / "a", {})
    assert load_tensors(tmp_path / "a") == ({}, {})
    labels = torch.zeros(3, dtype=torch.int64).as_strided((0,), (0,))  # an empty one of any stride
    save_tensors(tmp_path / "a", {"labels": labels})
    assert load_tensors(tmp_path / "a")[0]["labels"].shape == (0,)


def test_gradients_and_strides_are_not_kept(tmp_path):
    matrix = torch.arange(6.0).reshape(2, 3).requires_grad_()
    save_tensors(tmp_path / "a", {"turned": matrix.T, "row": matrix[1] * 2})
    tensors, _ = load_tensors(tmp_path / "a")
    assert torch.equal(tensors["turned"], matrix.detach().T)
    assert tensors["turned"].is_contiguous()
    assert not tensors["row"].requires_grad


def test_other_readers_of_safetensors_can_read_the_file(path):
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        assert torch.equal(file.get_tensor("labels"), TENSORS["labels"])
        assert file.metadata()["round"] == "3"


def test_same_content_gives_the_same_bytes_in_any_order(tmp_path, path):
    for tensors, notes in [
        (dict(reversed(TENSORS.items())), dict(reversed(NOTES.items()))),
        open_tensors(path),
    ]:
        save_tensors(tmp_path / "again", tensors, notes)
        assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_bytes_are_the_same_on_every_machine(tmp_path):
    save_tensors(tmp_path / "a", {"y": torch.tensor([1, 2]), "x": torch.ones(3)}, {"round": 3})
    digest = hashlib.sha256((tmp_path / "a").read_bytes()).hexdigest()
    assert digest == "63554ce8ef01c575874247775dea4274080e3a8018af73b6f838f38c11e0259f", (
        "the bytes of all artefacts changed: files that are there no longer compare as equal"
    )


def test_payload_starts_at_a_multiple_of_eight(tmp_path):
    for length in range(9):
        save_tensors(tmp_path / "a", {"x": torch.ones(2)}, {"note": "n" * length})
        raw = (tmp_path / "a").read_bytes()
        assert int.from_bytes(raw[:8], "little") % 8 == 0


def test_writer_that_fails_leaves_the_old_tensors(path):
    before = path.read_bytes()
    with pytest.raises(TypeError):
        save_tensors(path, TENSORS, {"note": object()})
    assert path.read_bytes() == before
    assert [path.name for path in path.parent.iterdir()] == [path.name]


# --- damage ---------------------------------------------------------------------------------------


def test_altered_cut_and_lengthened_files_are_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    save_tensors(path, {"x": torch.arange(4.0), "y": torch.tensor([1, 2])}, {"round": 3})
    raw = path.read_bytes()
    for position, mask in product(range(len(raw)), (0x01, 0x80, 0xFF)):
        altered = bytearray(raw)
        altered[position] ^= mask
        path.write_bytes(altered)
        assert "truncated or altered" in refusal(load_tensors, path), position
    for damaged in (*(raw[:length] for length in range(len(raw))), raw + b"\0", raw + b" " * 99):
        path.write_bytes(damaged)
        assert "truncated or altered" in refusal(load_tensors, path), len(damaged)
    for load in READERS:
        path.write_bytes(raw[:-1] + b"\xff")
        assert "truncated or altered" in refusal(load, path)


def test_truncated_file_without_tensors_is_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    for length in range(8):  # of which seven end in spaces that the JSON does not need
        save_tensors(path, {}, {"diverged_at": "n" * length})
        path.write_bytes(path.read_bytes()[:-1])
        refusal(load_tensors, path)


def test_other_files_and_no_file_are_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    for load in READERS:
        assert "No such file" in refusal(load, tmp_path / "none.safetensors")
    for metadata in (None, {"round": "3"}):
        save_file({"x": torch.ones(3)}, path, metadata=metadata)
        assert "SHA-256" in refusal(load_tensors, path)
    lengths = (2).to_bytes(8, "little"), (4).to_bytes(8, "little")
    for content in (b"\xff" * 50, lengths[0] + b"[]", lengths[1] + b"null"):
        path.write_bytes(content)
        assert "truncated or altered" in refusal(load_tensors, path)
    path.write_bytes((10**6).to_bytes(8, "little") + b"[" * 10**6)
    refusal(load_tensors, path)


# --- tensors that stay in their file --------------------------------------------------------------


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
def test_only_mapped_tensors_lie_in_the_file(path):
    for load in READERS:
        tensors, _ = load(path)
        found = {file_behind(tensors[name]) == str(path) for name in ("labels", "images")}
        assert found == {load is map_tensors}


def test_writing_to_a_mapped_tensor_leaves_the_file_as_it_was(path):
    before = path.read_bytes()
    map_tensors(path)[0]["images"].zero_()
    assert path.read_bytes() == before
    assert torch.equal(map_tensors(path)[0]["images"], TENSORS["images"])


def test_mapped_tensors_outlive_a_new_file_in_their_place(path):
    mapped, _ = map_tensors(path)
    save_tensors(path, {"images": torch.zeros(2)})
    assert torch.equal(mapped["images"], TENSORS["images"])


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
