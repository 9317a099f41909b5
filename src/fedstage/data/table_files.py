"""Tables as files: CSV or TSV, Parquet, and the JSON of LEAF (Caldas et al. 2018)."""

import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fedstage.data.excerpts import excerpt, listed, quoted, shortened
from fedstage.data.text_files import Files, apart, is_text, read_header, read_text, require_once
from fedstage.errors import FedstageError, each
from fedstage.storage.tables import load_foreign_table

_LOGGER = logging.getLogger(__name__)

_NAMELESS = re.compile(r"(Unnamed: \d+)?$")  # as pandas names an index that was written twice


def read_files(paths: Sequence[Path], texts: Collection[str]) -> Files:
    """Return the tables in files, each with its path.

    The columns `texts` of text files are read as texts, even where they look like numbers, and so
    are columns that are not numbers in all of the text files.
    """
    tables = each(lambda path: _without_index(path, read_table(path, texts=texts)), paths)
    files = list(zip(paths, tables, strict=True))
    written = [column for path, table in files if is_text(path) for column in table.schema]
    numbers, others = ({own.name for own in written if (own.type == pa.float64()) == is_number}
                       for is_number in (True, False))  # fmt: skip
    if numbers & others:
        return read_files(paths, {*texts, *others})
    odd = [one for one in sorted(numbers | others) if one != one.strip() or _NAMELESS.match(one)]
    if odd:
        told = listed([quoted(name) for name in odd])
        _LOGGER.warning("columns without a name, or with spaces around it: %s", told)
    return files


def _without_index(path: Path, table: pa.Table) -> pa.Table:
    """Leave out the index that pandas writes into Parquet, and empty columns without a name."""
    index = [name for name in table.column_names if re.fullmatch(r"__index_level_\d+__", name)]
    if index:
        _LOGGER.warning("%s: the index of pandas is left out: %s", path, ", ".join(index))
    if "" in table.column_names and table[""].null_count == len(table):
        _LOGGER.warning("%s: a column without name and values is left out", path)
        index.append("")
    return table.drop_columns(index)


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
    read: Callable[[list[str]], pa.Table]
    if is_text(path):
        names = read_header(path)
        read = partial(read_text, path, names, texts)
    elif path.suffix.lower() == ".json":
        table = _leaf(path)
        names, read = table.column_names, table.select
    else:
        names, read = read_schema(path).names, partial(load_foreign_table, path)
    for key, name in (columns or {}).items():
        require(path, key, name, names)
    table = read(list(dict.fromkeys((columns or {}).values())) or names)
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


def read_schema(path: Path) -> pa.Schema:
    """Return the columns of a Parquet file; FedstageError if it is damaged or has a name twice."""
    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        detail = str(error).splitlines()[0]
        raise FedstageError(f"{path}: truncated, or not a Parquet file ({detail})") from None
    require_once(path, schema.names)
    return schema


def _leaf(path: Path) -> pa.Table:
    """Return LEAF's samples as a table: ``user``, ``y``, and ``x``, or ``x0``, ``x1``, ..."""
    try:
        content = json.loads(path.read_bytes(), object_pairs_hook=_each_once)
        data = content["user_data"]
        named = map(str, content["users"])
        stated = _each_once(list(zip(named, content["num_samples"], strict=True)))
        for user in dict.fromkeys([*stated, *data]):
            counts = [len(data.get(user, {}).get(key, [])) for key in "xy"]
            if {*counts} != {stated.get(user)}:
                told = f"{counts[0]} x, {counts[1]} y and num_samples = {stated.get(user)}"
                raise FedstageError(f"{path}: user {quoted(user)}: {told}: must be the same")
        if empty := [quoted(user) for user, own in data.items() if not own["y"]]:
            _LOGGER.warning("%s: users without samples: %s", path, listed(empty))
        users = [user for user, own in data.items() for _ in own["y"]]
        x, y = ([value for own in data.values() for value in own[key]] for key in "xy")
        columns = {"x": x}
        if x and isinstance(x[0], list):
            columns = {f"x{n}": list(values) for n, values in enumerate(zip(*x, strict=True))}
        return pa.table({"user": users, "y": y, **columns})
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError,
            pa.ArrowException) as error:  # fmt: skip
        raise FedstageError(f"{path}: is not JSON in the form of LEAF ({error!r})") from None


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; ValueError if it has a key twice, of which the last would win."""
    found = dict(pairs)
    for name, times in Counter(key for key, _ in pairs).items():
        if times > 1:
            raise ValueError(f"{shortened(name)} is there {times} times")
    return found
