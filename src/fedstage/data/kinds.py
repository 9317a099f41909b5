"""What a column of a table holds, and whether it has a value in each row."""

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from fedstage.data.excerpts import INVISIBLE, excerpt, quoted
from fedstage.data.table_files import require
from fedstage.data.text_files import LINE_BREAK, File, is_text, row_at
from fedstage.errors import FedstageError

_VISIBLE = rf"[^\p{{Z}}\p{{Cc}}\p{{Cf}}{INVISIBLE}]"

#: What a column of a type holds.
_KINDS = {
    "integer": pa.types.is_integer,
    "number": lambda kind: pa.types.is_floating(kind) or pa.types.is_decimal(kind),
    "text": lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind),
    "boolean": pa.types.is_boolean,
    "empty": pa.types.is_null,
}
#: What names of classes, clients and groups are.
_OF_NAMES = ("integer", "text", "boolean")


def kind_of(kind: pa.DataType) -> str | None:
    """Return what a column holds: integer, number, text, boolean, empty; None for anything else."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return next((name for name, is_one in _KINDS.items() if is_one(kind)), None)


def required(key: str, name: str, file: File, kinds: Sequence[str], must: str) -> pa.ChunkedArray:
    """Return the column of a setting, of certain kinds, that has a value in each row.

    Raises
    ------
    FedstageError
        If there is no such column, or one of another kind, which `must` be such, or without a value
        somewhere: none, or nothing that can be seen.
    """
    path, table = file
    require(path, key, name, table.column_names)
    column = table.column(name)
    if (kind := kind_of(column.type)) not in kinds:
        raise FedstageError(f"{path}: {key} = {name!r}: column is {column.type}; {must}")
    empty = column.is_null()
    if kind == "text":
        seen = pc.match_substring_regex(column.cast(pa.large_string()), _VISIBLE)
        empty = pc.invert(pc.fill_null(seen, False))
    if times := pc.sum(empty).as_py():
        where = row_at([file], pc.index(empty, True).as_py())
        more = f", as in {times} of {len(column)} rows" if times > 1 else ""
        quotes = "; in quotes, a mark such as NA is one" if is_text(path) else ""
        raise FedstageError(f"{where}: {excerpt(name)}: missing{more}; a value is required{quotes}")
    return column


def name_column(key: str, name: str, file: File) -> pa.ChunkedArray:
    """Return the column of classes, clients or groups of a setting: integers, texts or booleans.

    Integers that have names in the file's metadata are given by these.
    """
    required(key, name, file, _OF_NAMES, must_be_names(key))
    return with_names(name, file)


def with_names(name: str, file: File) -> pa.ChunkedArray:
    """Return a column, with names in place of integers where the file's metadata state some."""
    column = file[1][name]
    names = stated_names(file[0], file[1].schema, name)
    if names is None or kind_of(column.type) != "integer":
        return column
    known = column.drop_null().unique().to_pylist()
    wrong = (number for number in known if not 0 <= number < len(names))
    for number in wrong:
        where = row_at([file], column.to_pylist().index(number))
        must = f"must be 0..{len(names) - 1}, there are {len(names)} classes"
        raise FedstageError(f"{where}: {excerpt(name)} = {number}: {must}")
    return pa.chunked_array([pa.array(names, pa.string()).take(column.combine_chunks())])


def stated_names(path: Path, schema: pa.Schema, column: str) -> tuple[str, ...] | None:
    """Return the names of integers in a file's metadata, None where a column has none."""
    metadata = schema.metadata or {}
    try:
        own = json.loads(metadata.get(f"{column}_names".encode(), b"null"))
        names = json.loads(metadata.get(b"huggingface", b"null"))
    except ValueError as error:
        raise FedstageError(f"{path}: metadata: is not JSON ({error})") from None
    for part in ("info", "features", column, "names"):
        names = names.get(part) if isinstance(names, dict) else None
    names = names if own is None else own
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise FedstageError(f"{path}: metadata of {column!r}: must list the names as strings")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise FedstageError(f"{path}: metadata of {column!r}: {quoted(twice)} is there twice")
    return tuple(names)


def must_be_names(key: str) -> str:
    """Return what the values of a setting's column must be, for messages."""
    return f"{key.partition('.')[2].removesuffix('_column')}s must be texts or integers"


def refuse_line_breaks(name: str, file: File) -> None:
    """Refuse a text of several lines: a stray quote makes one value of all rows up to the next."""
    column = file[1][name]
    if kind_of(column.type) != "text":
        return
    broken = pc.match_substring_regex(column.cast(pa.string()), LINE_BREAK)
    if pc.any(broken).as_py():  # before pc.index, which imports pandas
        position = pc.index(broken, True).as_py()
        quote = ", or the quote that begins the value" if is_text(file[0]) else ""
        value = f"{excerpt(name)} = {quoted(column[position].as_py())}"
        fault = f"a line break in a value; delete it{quote}"
        raise FedstageError(f"{row_at([file], position)}: {value}: {fault}")
