"""Tables as files: CSV or TSV with a header, Parquet, and the JSON of LEAF (Caldas et al. 2018).

In messages the rows of a text file are counted as spreadsheets do, the header as row 1, and the
rows of other files from 0.
"""

import json
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from fedstage.data.excerpts import excerpt, listed, quoted
from fedstage.data.text_files import apart, is_text, read_header, read_text, refuse_header
from fedstage.errors import FedstageError, each
from fedstage.storage.tables import load_foreign_table

_LOGGER = logging.getLogger(__name__)

Files: TypeAlias = Sequence[tuple[Path, pa.Table]]


def read_files(paths: Sequence[Path], texts: Collection[str]) -> Files:
    """Return the tables in files, each with its path.

    The columns `texts` of text files are read as texts, even where they look like numbers, and so
    are columns that are not numbers in all of the text files.
    """
    tables = each(lambda path: read_table(path, texts=texts), paths)
    written = [table.schema for path, table in zip(paths, tables, strict=True) if is_text(path)]
    kinds = Counter(column.name for column in {column for schema in written for column in schema})
    if mixed := {name for name, count in kinds.items() if count > 1}:
        return read_files(paths, {*texts, *mixed})
    if odd := sorted(name for name in kinds if name != name.strip() or not name):
        told = listed([quoted(name) for name in odd])
        _LOGGER.warning("columns without a name, or with spaces around it: %s", told)
    return list(zip(paths, tables, strict=True))


def read_table(
    path: Path, columns: Mapping[str, str] | None = None, *, texts: Collection[str] = ()
) -> pa.Table:
    """Read the columns of a file by the key of each, by default all.

    A column of a text file becomes numbers (float64) if every value is a number without leading
    zeros, and is not in `texts`; otherwise texts.

    Raises
    ------
    FedstageError
        If the file is damaged or has no rows, or has the name of a column, or its header, twice; in
        a text file, also if a row has another number of cells, or a quote is not closed.
    """
    if is_text(path):
        names = read_header(path)
        _require_once(path, names)
    else:
        table = _leaf(path) if path.suffix.lower() == ".json" else None
        names = read_schema(path).names if table is None else table.column_names
    for key, name in (columns or {}).items():
        require(path, key, name, names)
    wanted = list((columns or {}).values())
    if is_text(path):
        table = read_text(path, names, wanted or names, texts)
        refuse_header(path, table)
    elif table is None:
        table = load_foreign_table(path, wanted)
    if not table.num_rows:
        raise FedstageError(f"{path}: has no rows")
    return table


def require(path: Path, key: str, column: str, known: Iterable[str]) -> None:
    """Raise FedstageError unless a file has the column of a setting."""
    names = list(known)
    if column not in names:
        there = f"{', '.join(map(excerpt, names))}{apart(path, names)}"
        raise FedstageError(f"{path}: {key} = {column!r}: no such column; its columns are {there}")


# --- other files ----------------------------------------------------------------------------------


def _require_once(path: Path, names: Iterable[str]) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise FedstageError(f"{path}: column {quoted(name)} is there {times} times; rename one")


def read_schema(path: Path) -> pa.Schema:
    """Return the columns of a Parquet file, each of which occurs once.

    Raises
    ------
    FedstageError
        If the file is damaged, or has a name of a column twice.
    """
    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        detail = str(error).splitlines()[0]
        raise FedstageError(f"{path}: truncated, or not a Parquet file ({detail})") from None
    _require_once(path, schema.names)
    return schema


def _leaf(path: Path) -> pa.Table:
    """Return LEAF's samples as a table: ``user``, ``y``, and ``x``, or ``x0``, ``x1``, ..."""
    try:
        data = json.loads(path.read_bytes())["user_data"]
        users = [user for user, own in data.items() for _ in own["y"]]
        x, y = ([value for own in data.values() for value in own[key]] for key in "xy")
        columns = {"x": x}
        if x and isinstance(x[0], list):
            columns = {f"x{n}": list(values) for n, values in enumerate(zip(*x, strict=True))}
        return pa.table({"user": users, "y": y, **columns})
    except (KeyError, TypeError, ValueError, AttributeError, pa.ArrowException) as error:
        raise FedstageError(f"{path}: is not JSON in the form of LEAF ({error!r})") from None
