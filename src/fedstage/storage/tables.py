"""Tables as Parquet files, verified at every read.

The metadata of a file have a key of what it states of itself: see `fedstage.storage.tensors`. The
SHA-256 is of all other bytes of the file.

Arrow's threads are not used. A process that ends before them is sometimes aborted after its work
(apache/arrow issues 34314 and 50482), and a job must not use more threads than it asked for.
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
from fedstage.storage.tensors import CHECKSUM, check_statement, describe_damage, statement

if TYPE_CHECKING:
    from pandas import DataFrame

#: The key in the metadata.
SEAL = "fedstage"
_DIGITS = 64  # of a SHA-256


def save_table(path: str | Path, columns: Mapping[str, Any], schema: pa.Schema) -> None:
    """Write columns as Parquet in the documented `schema`."""
    table = pa.table({name: columns[name] for name in schema.names}, schema=schema)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, compression="zstd") as writer:
        writer.write_table(table)
        seal = statement(path) | {CHECKSUM: "0" * _DIGITS}
        writer.add_key_value_metadata({SEAL: json.dumps(seal, separators=(",", ":"))})
    before, _, after = _around_digest(sink.getvalue().to_pybytes())
    with replacing(path) as temporary:
        temporary.write_bytes(before + _digest(before, after) + after)


def _around_digest(raw: bytes) -> tuple[bytes, bytes, bytes]:
    """Return a file's digest, and all bytes before and after it."""
    key = f'"{CHECKSUM}":"'.encode()
    start = raw.rfind(key) + len(key)
    return raw[:start], raw[start : start + _DIGITS], raw[start + _DIGITS :]


def _digest(before: bytes, after: bytes) -> bytes:
    return hashlib.sha256(before + after).hexdigest().encode()


def save_rows(path: str | Path, rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> None:
    """Write rows as `save_table` writes columns."""
    save_table(path, {name: [row[name] for row in rows] for name in schema.names}, schema)


def load_table(path: str | Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a Parquet file that `save_table` wrote.

    Parameters
    ----------
    columns : sequence of str, optional
        The columns to read, by default all.

    Raises
    ------
    FedstageError
        If the file is missing or damaged, belongs to another path, or lacks one of `columns`.
    """
    raw = read_bytes(path)
    before, stated, after = _around_digest(raw)
    if stated != _digest(before, after):
        raise FedstageError(describe_damage(path, "a Parquet file with a valid SHA-256"))
    # Not read_table: it imports pyarrow.dataset and thereby pandas, which takes a second.
    file = pq.ParquetFile(pa.BufferReader(raw), pre_buffer=False)
    check_statement(path, json.loads(file.metadata.metadata[SEAL.encode()]))
    return _read(path, file, columns)


def load_foreign_table(path: str | Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a Parquet file of the user; checksums of pages are verified where it has them.

    Raises
    ------
    FedstageError
        If the file is missing or damaged, or lacks one of `columns`.
    """
    if not Path(path).is_file():
        raise FedstageError(f"{path}: no such file")
    try:
        with pq.ParquetFile(path, page_checksum_verification=True, pre_buffer=False) as file:
            return _read(path, file, columns)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        detail = str(error).splitlines()[0]
        raise FedstageError(f"{path}: truncated or altered, not Parquet ({detail})") from None


def _read(path: str | Path, file: pq.ParquetFile, columns: Sequence[str] | None) -> pa.Table:
    missing = set(columns or ()) - set(file.schema_arrow.names)
    if missing:
        raise FedstageError(f"{path}: has no column {sorted(missing)[0]!r}")
    return file.read(columns=list(columns) if columns else None, use_threads=False)


def frame_of(table: pa.Table) -> "DataFrame":
    """Return a table as a pandas data frame."""
    frame: DataFrame = table.to_pandas(use_threads=False)
    return frame
