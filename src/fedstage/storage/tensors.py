"""Reading and writing what stages exchange: tensors as safetensors, tables as Parquet.

Every file is checked when it is read: safetensors by a SHA-256
over header and payload that stands in the file's own metadata, Parquet by its page checksums.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from fedstage.errors import FedstageError
from fedstage.storage.files import read_bytes, replacing

if TYPE_CHECKING:  # stages that only read tables do not wait for torch and pandas
    import torch
    from pandas import DataFrame

Weights = dict[str, "torch.Tensor"]

_METADATA = "__metadata__"
_CHECKSUM = "sha256"
_SCHEMA = b"schema_sha256"
_LENGTH = 8  # a safetensors file starts with the header's length, 8 bytes little endian


def save_tensors(
    path: str | Path,
    tensors: Mapping[str, "torch.Tensor"],
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Write tensors and JSON-serialisable metadata; the same content gives the same bytes."""
    from safetensors.torch import save

    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    raw = save(contiguous)
    start = _LENGTH + int.from_bytes(raw[:_LENGTH], "little")
    header = json.loads(raw[_LENGTH:start])
    header[_METADATA] = {key: json.dumps(value) for key, value in (metadata or {}).items()}
    payload = raw[start:]
    header[_METADATA][_CHECKSUM] = _checksum(header, payload)
    encoded = _encode(header)
    encoded += b" " * (-len(encoded) % _LENGTH)
    with replacing(path) as temporary:
        temporary.write_bytes(len(encoded).to_bytes(_LENGTH, "little") + encoded + payload)


def load_tensors(path: str | Path) -> tuple[Weights, dict[str, Any]]:
    """Read what `save_tensors` wrote: tensors on the CPU, and their metadata.

    Raises
    ------
    FedstageError
        If the file is missing, truncated or altered.
    """
    from safetensors.torch import load

    raw = read_bytes(path)
    length = int.from_bytes(raw[:_LENGTH], "little")
    payload = memoryview(raw)[_LENGTH + length :]
    try:
        header = json.loads(raw[_LENGTH : _LENGTH + length])
        metadata = header[_METADATA]
        expected = metadata.pop(_CHECKSUM)
        intact = len(raw) > _LENGTH + length - 1 and _checksum(header, payload) == expected
        header[_METADATA][_CHECKSUM] = expected
    except (ValueError, KeyError, TypeError, AttributeError):
        intact = False
    if not intact:
        raise FedstageError(_damaged(path, "a safetensors file with a valid SHA-256"))
    return load(raw), {
        key: json.loads(value) for key, value in metadata.items() if key != _CHECKSUM
    }


def save_table(path: str | Path, columns: Mapping[str, Any], schema: pa.Schema) -> None:
    """Write columns as Parquet with page checksums, in the documented `schema`."""
    described = schema.with_metadata({_SCHEMA: _describe(schema)})
    table = pa.table({name: columns[name] for name in schema.names}, schema=described)
    with replacing(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)


def load_table(path: str | Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a Parquet file, verifying its page checksums.

    Raises
    ------
    FedstageError
        If the file is missing, truncated or altered, or lacks one of `columns`.
    """
    if not Path(path).is_file():
        raise FedstageError(f"{path}: no such file")
    try:
        # Not read_table: that imports pyarrow.dataset, and so pandas, which costs a second.
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            intact = _is_as_written(file.schema_arrow)
            table = file.read(columns=list(columns) if columns else None)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        detail = str(error).splitlines()[0]
        raise FedstageError(_damaged(path, "a Parquet file with valid checksums", detail)) from None
    if not intact:
        raise FedstageError(_damaged(path, "a Parquet file with the schema it was written in"))
    missing = set(columns or ()) - set(table.column_names)
    if missing:
        raise FedstageError(f"{path}: has no column {sorted(missing)[0]!r}")
    return table


def load_frame(path: str | Path) -> "DataFrame":
    """Read a Parquet file as a pandas data frame, verified as by `load_table`."""
    frame: DataFrame = load_table(path).to_pandas()
    return frame


def _describe(schema: pa.Schema) -> bytes:
    return (
        hashlib.sha256(schema.to_string(show_schema_metadata=False).encode()).hexdigest().encode()
    )


def _is_as_written(schema: pa.Schema) -> bool:
    """Whether names and types are those written: page checksums do not cover the footer."""
    return (schema.metadata or {}).get(_SCHEMA) in (None, _describe(schema))


def _checksum(header: Mapping[str, Any], payload: bytes | memoryview) -> str:
    digest = hashlib.sha256(_encode(header))
    digest.update(payload)
    return digest.hexdigest()


def _encode(header: Mapping[str, Any]) -> bytes:
    return json.dumps(header, sort_keys=True, separators=(",", ":")).encode()


def _damaged(path: str | Path, expected: str, detail: str = "") -> str:
    reason = f" ({detail})" if detail else ""
    return f"{path}: truncated or altered, not {expected}{reason}; delete it to make it again"
