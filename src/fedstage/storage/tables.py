"""Tables as Parquet with page checksums and a digest of their schema, verified at every read."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from fedstage.errors import FedstageError
from fedstage.storage.files import replacing
from fedstage.storage.tensors import describe_damage

if TYPE_CHECKING:
    from pandas import DataFrame

_SCHEMA = b"schema_sha256"


def save_table(path: str | Path, columns: Mapping[str, Any], schema: pa.Schema) -> None:
    """Write columns as Parquet with page checksums, in the documented `schema`."""
    described = schema.with_metadata({_SCHEMA: _digest(schema)})
    table = pa.table({name: columns[name] for name in schema.names}, schema=described)
    with replacing(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)


def save_rows(path: str | Path, rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> None:
    """Write rows as `save_table` writes columns."""
    save_table(path, {name: [row[name] for row in rows] for name in schema.names}, schema)


def load_table(path: str | Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a Parquet file; FedstageError if it is missing, damaged or lacks one of `columns`."""
    if not Path(path).is_file():
        raise FedstageError(f"{path}: no such file")
    try:
        # Not read_table: it imports pyarrow.dataset and thereby pandas, which takes a second.
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            # Page checksums do not cover the footer, which holds names and types.
            schema = file.schema_arrow
            intact = (schema.metadata or {}).get(_SCHEMA) in (None, _digest(schema))
            table = file.read(columns=list(columns) if columns else None)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        detail = str(error).splitlines()[0]
        expected = "a Parquet file with valid checksums"
        raise FedstageError(describe_damage(path, expected, detail)) from None
    if not intact:
        expected = "a Parquet file with the schema it was written in"
        raise FedstageError(describe_damage(path, expected))
    missing = set(columns or ()) - set(table.column_names)
    if missing:
        raise FedstageError(f"{path}: has no column {sorted(missing)[0]!r}")
    return table


def load_frame(path: str | Path) -> "DataFrame":
    """Read a Parquet file as a pandas data frame, verified as by `load_table`."""
    frame: DataFrame = load_table(path).to_pandas()
    return frame


def _digest(schema: pa.Schema) -> bytes:
    text = schema.to_string(show_schema_metadata=False)
    return hashlib.sha256(text.encode()).hexdigest().encode()
