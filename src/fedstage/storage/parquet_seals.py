"""Seals of Parquet files: the identity of the file, and SHA-256 digests of all its bytes.

The seal is one more key in the file's own metadata, so other programs can still read the file. It
has a digest of each row group's bytes and one of the footer. Since the footer contains the seal,
its digest is computed with zeros in place of the digest. So any row groups can be verified without
the others.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fedstage.storage.identity import SEAL, check_statement, statement

_ZEROS = "0" * 64
_FOOTER = re.compile(rb'"footer":"([0-9a-f]{64})"')
_TAIL = 8  # bytes at the end: the footer's length, 4 little endian, and the magic number


def sealed_parquet(table: pa.Table, path: str | Path, rows_a_group: int) -> bytes:
    """Return a table as the bytes of the Parquet file at `path`."""
    count = max(1, -(-table.num_rows // rows_a_group))
    empty = _seal(path, [_ZEROS] * count)
    sink = pa.BufferOutputStream()
    options = {"compression": "zstd", "write_page_checksum": True}
    with pq.ParquetWriter(sink, table.schema, **options) as writer:
        writer.write_table(table, row_group_size=rows_a_group)
        writer.add_key_value_metadata({SEAL: empty})
    raw: bytes = sink.getvalue().to_pybytes()
    start = footer_start(raw)
    groups = [_sha256(raw[span]) for span in _spans(pq.read_metadata(pa.BufferReader(raw)), start)]
    # The texts are as long as those that they replace, so nothing else in the footer changes.
    footer = raw[start:].replace(empty.encode(), _seal(path, groups).encode())
    digest = f'"footer":"{_sha256(footer)}"'.encode()
    return raw[:start] + _FOOTER.sub(digest, footer)


def verify_footer(raw: memoryview, path: str | Path) -> tuple[pq.FileMetaData, list[str]]:
    """Return the metadata of the Parquet file at `path`, and the digests of its row groups.

    Raises
    ------
    ValueError
        If the footer is not what was written.
    FedstageError
        If it belongs to another file.
    """
    footer = bytes(raw[footer_start(raw) :])
    stated = _FOOTER.findall(footer)
    if len(stated) != 1:
        raise ValueError("it has no SHA-256: altered, or an older version wrote it")
    blank = _FOOTER.sub(f'"footer":"{_ZEROS}"'.encode(), footer)
    if _sha256(blank) != stated[0].decode():
        raise ValueError("the footer is not what its SHA-256 is of")
    metadata = pq.read_metadata(pa.BufferReader(raw))
    seal: dict[str, Any] = json.loads(metadata.metadata[SEAL.encode()])
    check_statement(path, seal)
    return metadata, seal["groups"]


def verify_groups(
    raw: memoryview, metadata: pq.FileMetaData, digests: Sequence[str], numbers: Iterable[int]
) -> None:
    """Raise ValueError unless these row groups are as written; `metadata` must be verified."""
    spans = _spans(metadata, footer_start(raw))
    for number in numbers:
        if _sha256(raw[spans[number]]) != digests[number]:
            raise ValueError(f"row group {number} is not what its SHA-256 is of")


def footer_start(raw: bytes | memoryview) -> int:
    """Return where the footer starts; ValueError if that is not within the file."""
    length = int.from_bytes(raw[-_TAIL:-4], "little") + _TAIL
    if not _TAIL < length <= len(raw):
        raise ValueError("cut off, or not a Parquet file")
    return len(raw) - length


def _spans(metadata: pq.FileMetaData, end: int) -> list[slice]:
    """Return the range of bytes of each row group; together they cover all before the footer."""
    starts = [_start(metadata.row_group(number)) for number in range(1, metadata.num_row_groups)]
    return [slice(*edges) for edges in pairwise([0, *starts, end])]


def _start(group: pq.RowGroupMetaData) -> int:
    """Return where the pages of a row group start."""
    columns = [group.column(number) for number in range(group.num_columns)]
    offsets: list[tuple[int | None, int]] = [
        (column.dictionary_page_offset, column.data_page_offset) for column in columns
    ]
    return min(offset for pair in offsets for offset in pair if offset)


def _seal(path: str | Path, groups: Sequence[str]) -> str:
    return json.dumps(
        {**statement(path), "footer": _ZEROS, "groups": groups}, separators=(",", ":")
    )


def _sha256(raw: bytes | memoryview) -> str:
    return hashlib.sha256(raw).hexdigest()
