import hashlib
import json
import math
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
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


@pytest.mark.parametrize("load", [load_tensors, map_tensors])
@pytest.mark.parametrize(
    "header",
    [
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
    ],
    ids=str,
)
def test_headers_that_make_no_sense_are_refused_although_intact(tmp_path, load, header):
    path = tmp_path / "a.safetensors"
    with_header(path, {"a": dict(ENTRY)})
    load(path)
    with_header(path, dict(header))
    assert "delete it to make it again" in refusal(load, path)


def test_a_header_of_a_million_brackets_is_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes((10**6).to_bytes(8, "little") + b"[" * 10**6)
    refusal(load_tensors, path)


# --- tensors --------------------------------------------------------------------------------------


def test_tensors_and_notes_come_back_as_they_were(tensors_file):
    tensors, notes = load_tensors(tensors_file)
    assert notes == NOTES
    assert set(tensors) == set(TENSORS)
    for name, tensor in TENSORS.items():
        assert tensors[name].dtype == tensor.dtype
        assert tensors[name].shape == tensor.shape
        assert torch.equal(tensors[name], tensor), name


def test_not_a_number_comes_back(tmp_path):
    save_tensors(tmp_path / "a", {"x": torch.tensor([math.nan])}, {"loss": math.nan})
    tensors, notes = load_tensors(tmp_path / "a")
    assert math.isnan(tensors["x"].item())
    assert math.isnan(notes["loss"])


def test_no_tensors_and_no_notes_are_a_file_too(tmp_path):
    save_tensors(tmp_path / "a", {})
    assert load_tensors(tmp_path / "a") == ({}, {})


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


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF], ids=hex)
def test_tensors_with_any_altered_byte_are_refused(tmp_path, mask):
    path = tmp_path / "a.safetensors"
    save_tensors(path, {"x": torch.arange(4.0), "y": torch.tensor([1, 2])}, {"round": 3})
    raw = path.read_bytes()
    for position in range(len(raw)):
        altered = bytearray(raw)
        altered[position] ^= mask
        path.write_bytes(altered)
        assert "truncated or altered" in refusal(load_tensors, path), position


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


@pytest.mark.parametrize("appended", [b"\0", b" ", b"x" * 100])
def test_tensors_with_appended_bytes_are_refused(tensors_file, appended):
    tensors_file.write_bytes(tensors_file.read_bytes() + appended)
    assert "truncated or altered" in refusal(load_tensors, tensors_file)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"round":"3"', b'"round":"4"'),
        (b'"loss":"0.1"', b'"loss":"0.2"'),
        (b'"labels":{', b'"labelz":{'),
        (b'"shape":[2,3,4]', b'"shape":[2,4,3]'),
        (b'"dtype":"I64"', b'"dtype":"U64"'),
    ],
)
def test_altered_header_is_refused(tensors_file, old, new):
    raw = tensors_file.read_bytes()
    assert raw.count(old) >= 1
    tensors_file.write_bytes(raw.replace(old, new, 1))
    assert "truncated or altered" in refusal(load_tensors, tensors_file)


def test_swapped_payloads_of_equal_length_are_refused(tmp_path):
    for name, value in (("a", 1.0), ("b", 2.0)):
        save_tensors(tmp_path / name, {"x": torch.full((8,), value)})
    one, other = ((tmp_path / name).read_bytes() for name in "ab")
    (tmp_path / "a").write_bytes(one[:-32] + other[-32:])
    assert "truncated or altered" in refusal(load_tensors, tmp_path / "a")


@pytest.mark.parametrize("metadata", [None, {"round": "3"}], ids=["no metadata", "no checksum"])
def test_safetensors_without_checksum_are_refused(tmp_path, metadata):
    path = tmp_path / "foreign.safetensors"
    save_file({"x": torch.ones(3)}, path, metadata=metadata)
    assert "SHA-256" in refusal(load_tensors, path)


@pytest.mark.parametrize(
    "content",
    [b"", b"abc", b"\xff" * 50, b"\x02" + b"\0" * 7 + b"[]", b"\x04" + b"\0" * 7 + b"null"],
)
def test_what_is_no_safetensors_file_is_refused(tmp_path, content):
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    assert "truncated or altered" in refusal(load_tensors, path)


def test_missing_tensors_are_named(tmp_path):
    assert "No such file" in refusal(load_tensors, tmp_path / "none.safetensors")


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


def test_columns_are_taken_in_the_order_of_the_schema_whatever_they_are(tmp_path, table_file):
    turned = {name: np.array(COLUMNS[name]) for name in reversed(COLUMNS)}
    save_table(tmp_path / "b.parquet", turned | {"more": [1, 2, 3, 4]}, SCHEMA)
    assert (tmp_path / "b.parquet").read_bytes() == table_file.read_bytes()


def test_chosen_columns_only(table_file):
    assert load_table(table_file, ["sample", "client"]).to_pydict() == {
        name: COLUMNS[name] for name in ("sample", "client")
    }


def test_null_is_kept(tmp_path):
    schema = pa.schema([("loss", pa.float64())])
    save_table(tmp_path / "a", {"loss": [0.5, None]}, schema)
    assert load_table(tmp_path / "a").to_pydict() == {"loss": [0.5, None]}


def test_frame_is_the_table(table_file):
    frame = load_frame(table_file)
    assert frame.to_dict("list") == COLUMNS


def test_missing_column_is_named(table_file):
    assert "has no column 'participant'" in refusal(
        lambda path: load_table(path, ["participant"]), table_file
    )


def test_missing_table_is_named(tmp_path):
    assert "no such file" in refusal(load_table, tmp_path / "none.parquet")


def test_truncated_table_is_refused(table_file):
    raw = table_file.read_bytes()
    for length in (*range(0, len(raw), 10), *range(len(raw) - 20, len(raw))):
        table_file.write_bytes(raw[:length])
        assert "truncated or altered" in refusal(load_table, table_file), length


def pages(path):
    """Return the byte ranges of a Parquet file that hold data pages (and their headers)."""
    metadata = pq.ParquetFile(path).metadata
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            starts = (chunk.dictionary_page_offset, chunk.data_page_offset)
            start = min(offset for offset in starts if offset)
            yield range(start, start + chunk.total_compressed_size)


def load_altered(path, raw, position, mask):
    """Return what a file with an altered byte holds, or None where it is refused."""
    altered = bytearray(raw)
    altered[position] ^= mask
    path.write_bytes(altered)
    try:
        return load_table(path, SCHEMA.names).to_pydict()
    except FedstageError:
        return None


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF], ids=hex)
def test_altered_pages_never_give_other_values(table_file, mask):
    raw = table_file.read_bytes()
    positions = [position for page in pages(table_file) for position in page]
    read = [load_altered(table_file, raw, position, mask) for position in positions]
    assert [values for values in read if values not in (None, COLUMNS)] == []


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF], ids=hex)
def test_altered_footer_gives_the_same_values_or_is_refused(table_file, mask):
    raw = table_file.read_bytes()
    end = max(page.stop for page in pages(table_file))
    read = [load_altered(table_file, raw, p, mask) for p in range(end, len(raw))]
    assert [values for values in read if values not in (None, COLUMNS)] == []


def test_altered_values_are_refused(tmp_path):
    numbers = np.random.default_rng(0).integers(0, 2**62, 2000)  # so that they fill the file
    path, schema = tmp_path / "a.parquet", pa.schema([("sample", pa.int64())])
    save_table(path, {"sample": numbers}, schema)
    raw = path.read_bytes()
    (page,) = pages(path)
    for position in np.linspace(page.start + 200, page.stop - 1, 60, dtype=int):
        altered = bytearray(raw)
        altered[position] ^= 1
        path.write_bytes(altered)
        assert "truncated or altered" in refusal(load_table, path), position


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"PAR1" + b"\0" * 50 + b"PAR1", b"client,role\n"]
)
def test_what_is_no_parquet_file_is_refused(tmp_path, content):
    path = tmp_path / "a.parquet"
    path.write_bytes(content)
    assert "truncated or altered" in refusal(load_table, path)


def test_reading_a_table_imports_neither_torch_nor_pandas(table_file):
    code = (
        "import sys; from fedstage.storage.tables import load_table; load_table(sys.argv[1]); "
        "print(sorted({'torch', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(table_file)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_an_empty_array_of_any_stride_is_written(tmp_path):
    labels = torch.zeros(3, dtype=torch.int64).as_strided((0,), (0,))
    save_tensors(tmp_path / "a.safetensors", {"labels": labels})
    loaded, _ = load_tensors(tmp_path / "a.safetensors")
    assert loaded["labels"].shape == (0,)
