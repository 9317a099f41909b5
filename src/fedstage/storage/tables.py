"""Tables as Parquet files with SHA-256 digests, verified at every read.

Arrow's threads are not used. A process that ends before them is sometimes aborted after its work
(apache/arrow issues 34314 and 50482), and a job must not use more threads than it asked for.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from fedstage.errors import FedstageError
from fedstage.storage.files import read_bytes, replacing
from fedstage.storage.parquet_seals import sealed_parquet, verify_footer, verify_groups
from fedstage.storage.tensors import describe_damage

if TYPE_CHECKING:
    from pandas import DataFrame

#: The most rows of a row group, unless the writer of a table gives another number.
ROWS_A_GROUP = 2**20


def save_table(
    path: str | Path,
    columns: Mapping[str, Any],
    schema: pa.Schema,
    rows_a_group: int = ROWS_A_GROUP,
) -> None:
    """Write columns as Parquet in the documented `schema`, with a digest of each row group."""
    table = pa.table({name: columns[name] for name in schema.names}, schema=schema)
    with replacing(path) as temporary:
        temporary.write_bytes(sealed_parquet(table, path, rows_a_group))


def save_rows(path: str | Path, rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> None:
    """Write rows as `save_table` writes columns."""
    save_table(path, {name: [row[name] for row in rows] for name in schema.names}, schema)


def load_table(
    path: str | Path,
    columns: Sequence[str] | None = None,
    where: Mapping[str, int] | None = None,
) -> pa.Table:
    """Read a Parquet file that `save_table` wrote.

    Parameters
    ----------
    columns : sequence of str, optional
        The columns to read, by default all.
    where : dict, optional
        Values of integer columns: row groups in which no row can have one of them are neither read
        nor verified. The others are returned whole.

    Raises
    ------
    FedstageError
        If the file is missing or damaged, belongs to another path, or lacks one of `columns`.
    """
    if not Path(path).is_file():
        raise FedstageError(f"{path}: no such file")
    raw = memoryview(_map(path) if where else read_bytes(path))
    try:
        metadata, digests = verify_footer(raw, path)
        groups = _groups_with(metadata, where or {})
        verify_groups(raw, metadata, digests, groups)
        missing = set(columns or ()) - set(metadata.schema.to_arrow_schema().names)
        if missing:
            raise FedstageError(f"{path}: has no column {sorted(missing)[0]!r}")
        # Not read_table: it imports pyarrow.dataset and thereby pandas, which takes a second.
        file = pq.ParquetFile(pa.BufferReader(raw), metadata=metadata, pre_buffer=False)
        chosen = list(columns) if columns else None
        return file.read_row_groups(groups, columns=chosen, use_threads=False)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(path, error) from None


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
            table = file.read(columns=list(columns) if columns else None, use_threads=False)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        detail = str(error).splitlines()[0]
        raise FedstageError(f"{path}: truncated or altered, not Parquet ({detail})") from None
    missing = set(columns or ()) - set(table.column_names)
    if missing:
        raise FedstageError(f"{path}: has no column {sorted(missing)[0]!r}")
    return table


def load_frame(path: str | Path) -> "DataFrame":
    """Read a Parquet file as a pandas data frame, verified as by `load_table`."""
    return frame_of(load_table(path))


def frame_of(table: pa.Table) -> "DataFrame":
    """Return a table as a pandas data frame."""
    frame: DataFrame = table.to_pandas(use_threads=False)
    return frame


def _map(path: str | Path) -> pa.Buffer:
    """Return the bytes of a file, which are read when they are accessed."""
    try:
        return pa.memory_map(str(path)).read_buffer()
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from None


def _groups_with(metadata: pq.FileMetaData, where: Mapping[str, int]) -> list[int]:
    """Return the row groups in which, by their statistics, a row may have these values."""
    places = {name: metadata.schema.names.index(name) for name in where}
    return [
        number
        for number in range(metadata.num_row_groups)
        if all(
            _may_have(metadata.row_group(number).column(places[name]).statistics, value)
            for name, value in where.items()
        )
    ]


def _may_have(statistics: pq.Statistics | None, value: int) -> bool:
    if statistics is None or not statistics.has_min_max:
        return True
    return bool(statistics.min <= value <= statistics.max)


def _damaged(path: str | Path, error: Exception) -> FedstageError:
    detail = str(error).splitlines()[0] if str(error) else type(error).__name__
    expected = "a Parquet file with valid SHA-256s"
    return FedstageError(describe_damage(path, expected, detail))
