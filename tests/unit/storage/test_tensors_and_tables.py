import hashlib
import json
import math
import subprocess
import sys
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import save_file

from fedstage.errors import FedstageError
from fedstage.storage.tables import load_frame, load_table, save_table
from fedstage.storage.tensors import load_tensors, map_tensors, save_tensors

SCHEMA = pa.schema([("client", pa.int32()), ("sample", pa.int64()), ("role", pa.string())])
COLUMNS = {
    "client": [1, 1, 2, 2],
    "sample": [0, 5, 6, 9],
    "role": ["train", "train", "validation", "train"],
}
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


@pytest.fixture
def tensors_file(tmp_path):
    path = tmp_path / "a.safetensors"
    save_tensors(path, TENSORS, NOTES)
    return path


@pytest.fixture
def table_file(tmp_path):
    path = tmp_path / "a.parquet"
    save_table(path, COLUMNS, SCHEMA)
    return path


def refusal(load, path):
    with pytest.raises(FedstageError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


def with_header(path, header, payload=bytes(8)):
    """Write a safetensors file whose checksum is right, whatever its header says."""
    metadata = header.pop("__metadata__", {})
    digest = hashlib.sha256(
        json.dumps(
            header | {"__metadata__": metadata}, sort_keys=True, separators=(",", ":")
        ).encode()
        + payload
    )
    header["__metadata__"] = metadata | {"sha256": digest.hexdigest()}
    encoded = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    path.write_bytes(len(encoded).to_bytes(8, "little") + encoded + payload)


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def test_headers_that_make_no_sense_are_refused_although_intact(tmp_path):
    path = tmp_path / "a.safetensors"
    with_header(path, {"a": dict(ENTRY)})
    assert load_tensors(path)[0].keys() == map_tensors(path)[0].keys() == {"a"}
    for header in (
        {"a": ENTRY | {"dtype": "F31"}},
        {"a": ENTRY | {"shape": [3]}},
        {"a": ENTRY | {"shape": [-2]}},
        {"a": ENTRY | {"shape": "x"}},
        {"a": ENTRY | {"data_offsets": [0, 4]}},
        {"a": ENTRY | {"data_offsets": [8, 0]}},
        {"a": ENTRY, "b": ENTRY},
        {"a": {"data_offsets": [0, 8]}},
        {"a": ENTRY, "__metadata__": {"round": "{"}},
        {"a": ENTRY, "__metadata__": {"round": 3}},
        {"a": ENTRY, "__metadata__": {"round": None}},
    ):
        with_header(path, header)
        for load in (load_tensors, map_tensors):
            assert "delete it to make it again" in refusal(load, path), header


# --- tensors --------------------------------------------------------------------------------------


def test_tensors_and_notes_come_back_as_they_were(tensors_file):
    tensors, notes = load_tensors(tensors_file)
    assert notes == NOTES
    assert set(tensors) == set(TENSORS)
    for name, tensor in TENSORS.items():
        assert tensors[name].dtype == tensor.dtype
        assert tensors[name].shape == tensor.shape
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


def test_other_readers_of_safetensors_can_read_the_file(tensors_file):
    from safetensors import safe_open

    with safe_open(tensors_file, framework="pt") as file:
        assert torch.equal(file.get_tensor("labels"), TENSORS["labels"])
        assert file.metadata()["round"] == "3"


def test_same_content_gives_the_same_bytes_in_any_order(tmp_path, tensors_file):
    for name, tensors, notes in [
        ("again", TENSORS, NOTES),
        ("turned", dict(reversed(TENSORS.items())), dict(reversed(NOTES.items()))),
    ]:
        save_tensors(tmp_path / name, tensors, notes)
        assert (tmp_path / name).read_bytes() == tensors_file.read_bytes(), name


def test_bytes_are_the_same_on_every_machine(tmp_path):
    save_tensors(tmp_path / "a", {"y": torch.tensor([1, 2]), "x": torch.ones(3)}, {"round": 3})
    digest = hashlib.sha256((tmp_path / "a").read_bytes()).hexdigest()
    assert digest == "63554ce8ef01c575874247775dea4274080e3a8018af73b6f838f38c11e0259f", (
        "the bytes of all artefacts changed: files that are there no longer compare as equal"
    )


def test_other_tensors_or_notes_give_other_bytes(tmp_path, tensors_file):
    changed = {**TENSORS, "labels": torch.tensor([3, -1, 1])}
    for tensors, notes in [(changed, NOTES), (TENSORS, {**NOTES, "round": 4})]:
        save_tensors(tmp_path / "other", tensors, notes)
        assert (tmp_path / "other").read_bytes() != tensors_file.read_bytes()


def test_payload_starts_at_a_multiple_of_eight(tmp_path):
    for length in range(9):
        save_tensors(tmp_path / "a", {"x": torch.ones(2)}, {"note": "n" * length})
        raw = (tmp_path / "a").read_bytes()
        assert int.from_bytes(raw[:8], "little") % 8 == 0


def test_tensors_with_any_altered_byte_are_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    save_tensors(path, {"x": torch.arange(4.0), "y": torch.tensor([1, 2])}, {"round": 3})
    raw = path.read_bytes()
    for position, mask in product(range(len(raw)), (0x01, 0x80, 0xFF)):
        altered = bytearray(raw)
        altered[position] ^= mask
        path.write_bytes(altered)
        assert "truncated or altered" in refusal(load_tensors, path), position
    for more in (b"\0", b" ", b"x" * 100):
        path.write_bytes(raw + more)
        assert "truncated or altered" in refusal(load_tensors, path), more


def test_truncated_tensors_are_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    save_tensors(path, {"x": torch.arange(4.0)}, {"round": 3})
    raw = path.read_bytes()
    for length in range(len(raw)):
        path.write_bytes(raw[:length])
        assert "truncated or altered" in refusal(load_tensors, path), length


def test_truncated_file_without_tensors_is_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    for length in range(8):  # of which seven end in spaces that the JSON does not need
        save_tensors(path, {}, {"diverged_at": "n" * length})
        path.write_bytes(path.read_bytes()[:-1])
        refusal(load_tensors, path)


def test_other_files_and_no_file_are_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    for load in (load_tensors, map_tensors):
        assert "No such file" in refusal(load, tmp_path / "none.safetensors")
    for metadata in (None, {"round": "3"}):
        save_file({"x": torch.ones(3)}, path, metadata=metadata)
        assert "SHA-256" in refusal(load_tensors, path)
    lengths = (2).to_bytes(8, "little"), (4).to_bytes(8, "little")
    for content in (b"", b"abc", b"\xff" * 50, lengths[0] + b"[]", lengths[1] + b"null"):
        path.write_bytes(content)
        assert "truncated or altered" in refusal(load_tensors, path)
    path.write_bytes((10**6).to_bytes(8, "little") + b"[" * 10**6)
    refusal(load_tensors, path)


def test_writer_that_fails_leaves_the_old_tensors(tensors_file):
    before = tensors_file.read_bytes()
    with pytest.raises(TypeError):
        save_tensors(tensors_file, TENSORS, {"note": object()})
    assert tensors_file.read_bytes() == before
    assert [path.name for path in tensors_file.parent.iterdir()] == [tensors_file.name]


# --- tables ---------------------------------------------------------------------------------------


def test_table_comes_back_with_its_schema(table_file):
    table = load_table(table_file)
    assert table.to_pydict() == COLUMNS
    assert table.schema.remove_metadata() == SCHEMA
    chosen = {name: COLUMNS[name] for name in ("sample", "client")}
    assert load_table(table_file, ["sample", "client"]).to_pydict() == chosen
    assert load_frame(table_file).to_dict("list") == COLUMNS
    save_table(table_file, {"loss": [0.5, None]}, pa.schema([("loss", pa.float64())]))
    assert load_table(table_file).to_pydict() == {"loss": [0.5, None]}


def test_columns_are_taken_in_the_order_of_the_schema_whatever_they_are(tmp_path, table_file):
    turned = {name: np.array(COLUMNS[name]) for name in reversed(COLUMNS)}
    save_table(tmp_path / "b.parquet", turned | {"more": [1, 2, 3, 4]}, SCHEMA)
    assert (tmp_path / "b.parquet").read_bytes() == table_file.read_bytes()


def test_truncated_table_is_refused(table_file):
    raw = table_file.read_bytes()
    for length in (*range(0, len(raw), 10), *range(len(raw) - 20, len(raw))):
        table_file.write_bytes(raw[:length])
        assert "truncated or altered" in refusal(load_table, table_file), length


def test_other_files_no_file_and_no_column_are_refused(tmp_path, table_file):
    message = refusal(lambda path: load_table(path, ["participant"]), table_file)
    assert "has no column 'participant'" in message
    assert "no such file" in refusal(load_table, tmp_path / "none.parquet")
    for content in (b"", b"PAR1", b"PAR1" + b"\0" * 50 + b"PAR1", b"client,role\n"):
        table_file.write_bytes(content)
        assert "truncated or altered" in refusal(load_table, table_file)


def test_reading_a_table_imports_neither_torch_nor_pandas(table_file):
    code = (
        "import sys; from fedstage.storage.tables import load_table; load_table(sys.argv[1]); "
        "print(sorted({'torch', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(table_file)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
