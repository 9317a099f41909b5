"""Tables as files: CSV or TSV with a header, Parquet, and the JSON of LEAF (Caldas et al. 2018).

In messages the rows of a text file are counted as spreadsheets do, the header as row 1, and the
rows of other files from 0.

Arrow reads text files rather than pandas: it tells a quoted NA from a missing value and a short row
from one with empty cells. All cells are read as texts; a column becomes numbers if all of its cells
are.
"""

import csv
import json
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from fedstage.data.excerpts import excerpt, listed, quoted
from fedstage.errors import FedstageError, each
from fedstage.storage.tables import load_foreign_table

_LOGGER = logging.getLogger(__name__)

Files: TypeAlias = Sequence[tuple[Path, pa.Table]]

#: The separator of each kind of text file.
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_OTHER_SEPARATORS = ";\t|"
#: Marks of a missing value in a text file, unless quoted.
_MISSING = ("", "?", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL")
_BLOCK = 2**20  # bytes that Arrow parses at a time, unless a row is longer
_LARGEST_BLOCK = 2**31 - 1
_END = "\x1eend of the file\x1e"


def is_text(path: Path) -> bool:
    """Whether a file is CSV or TSV."""
    return path.suffix.lower() in _SEPARATORS


def row_at(path: Path, position: int) -> str:
    """Return the file and row of the sample at a position, counted from 0, for messages."""
    return f"{path}: row {position + 2 if is_text(path) else position}"


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
    if path.suffix.lower() == ".json":
        table = _leaf(path)
        names = table.column_names
    else:
        names = _read_header(path) if is_text(path) else read_schema(path).names
    for key, name in (columns or {}).items():
        require(path, key, name, names)
    wanted = list(dict.fromkeys((columns or {}).values())) or names
    if is_text(path):
        table = _converted(_read_text(path, names, wanted, _BLOCK), texts)
        _refuse_header(path, table)
    elif path.suffix.lower() != ".json":
        table = load_foreign_table(path, wanted)
    if not table.num_rows:
        raise FedstageError(f"{path}: has no rows")
    return table


def require(path: Path, key: str, column: str, known: Iterable[str]) -> None:
    """Raise FedstageError unless a file has the column of a setting."""
    names = list(known)
    if column not in names:
        there = f"{', '.join(map(excerpt, names))}{_apart(path, names)}"
        raise FedstageError(f"{path}: {key} = {column!r}: no such column; its columns are {there}")


def _apart(path: Path, names: Sequence[str]) -> str:
    """Return a hint for a header with other separators than commas; otherwise an empty string."""
    other = path.suffix.lower() == ".csv" and len(names) == 1 and {*names[0]} & {*_OTHER_SEPARATORS}
    return "; separate columns with commas, and write decimals with a point" if other else ""


def _require_once(path: Path, names: Sequence[str]) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise FedstageError(f"{path}: column {quoted(name)} is there {times} times; rename one")


# --- text files -----------------------------------------------------------------------------------


def _read_header(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            separator = _SEPARATORS[path.suffix.lower()]
            names = next(csv.reader(file, delimiter=separator, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error, StopIteration) as error:
        _refuse_other_encodings(path)
        detail = "a quote that is not closed" if "end of data" in str(error) else error
        raise FedstageError(f"{path}: not a CSV file with a header ({detail or 'empty'})") from None
    _require_once(path, names)
    return names


def _read_text(path: Path, names: Sequence[str], columns: Sequence[str], block: int) -> pa.Table:
    """Return columns as texts.

    One row more is read, which a quote that is not closed swallows.
    """
    separator = _SEPARATORS[path.suffix.lower()]
    content = path.read_bytes() + f"\n{separator.join([_END] * len(names))}\n".encode()
    wrong: list[Any] = []

    def skip(row: Any) -> str:
        wrong.append(row)
        return "skip"

    reading = pa.csv.ReadOptions(use_threads=False, block_size=block)
    parsing = pa.csv.ParseOptions(
        delimiter=separator, newlines_in_values=True, invalid_row_handler=skip
    )
    converting = pa.csv.ConvertOptions(
        null_values=list(_MISSING), strings_can_be_null=True, quoted_strings_can_be_null=False,
        include_columns=list(columns), column_types=dict.fromkeys(names, pa.string()),
    )  # fmt: skip
    try:
        table = pa.csv.read_csv(pa.BufferReader(content), reading, parsing, converting)
    except pa.ArrowException as error:
        longest = min(len(content), _LARGEST_BLOCK)
        if "block" in str(error) and block < longest:
            return _read_text(path, names, columns, longest)
        _refuse_other_encodings(path)
        detail = str(error).splitlines()[0]
        raise FedstageError(f"{path}: not a CSV file with a header ({detail})") from None
    last = table.num_rows - 1
    if last < 0 or {*table.slice(last).to_pylist()[0].values()} != {_END}:
        row = next((row.number for row in wrong if _END in row.text), last + 2)
        raise FedstageError(f"{path}: row {row}: a quote that is not closed; delete it")
    if wrong:
        row, more = wrong[0], f", as in {len(wrong)} rows" if len(wrong) > 1 else ""
        fault = f"has {row.actual_columns} fields, and the header has {row.expected_columns}{more}"
        shown = f"{excerpt(row.text)}{_apart(path, names)}"
        raise FedstageError(f"{path}: row {row.number}: {fault}: {shown}")
    return table.slice(0, last)


def _converted(table: pa.Table, texts: Collection[str]) -> pa.Table:
    """Return a table with numbers in the columns, not of `texts`, whose cells all are numbers."""
    for place, name in enumerate(table.column_names):
        numbers = None if name in texts else _numbers(table[name])
        kept = _present(table[name]) if numbers is None else numbers
        table = table.set_column(place, name, kept)  # one after the other, to save memory
    return table


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return texts as numbers, None if one is none, or has zeros before it."""
    try:
        numbers = column.cast(pa.float64())
    except pa.ArrowInvalid:
        try:
            column = _present(pc.utf8_trim_whitespace(column))
            numbers = column.cast(pa.float64())
        except pa.ArrowInvalid:
            return None
    for low, high in (("00", "0:"), ("-00", "-0:"), ("+00", "+0:")):  # of 0 and a digit
        if pc.any(pc.and_(pc.greater_equal(column, low), pc.less(column, high))).as_py():
            return None
    return numbers


def _present(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts, with null for those that are empty."""
    empty = pc.equal(pc.utf8_trim_whitespace(column), "")
    return pc.if_else(empty, pa.scalar(None, pa.string()), column)


def _refuse_other_encodings(path: Path) -> None:
    """Raise FedstageError with a file's first line that is not in UTF-8, if there is one."""
    content = path.read_bytes() if path.is_file() else b""
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line, byte = content.count(b"\n", 0, error.start) + 1, content[error.start]
        fault = f"not a CSV file in UTF-8 (line {line}: byte {byte:#04x}); save it as UTF-8"
        raise FedstageError(f"{path}: {fault}") from None


def _refuse_header(path: Path, table: pa.Table) -> None:
    """Raise FedstageError if a row repeats the names of several columns, as in joined files."""
    if table.num_columns < 2 or any(kind != pa.string() for kind in table.schema.types):
        return
    again = reduce(pc.and_, (pc.equal(table[name], name) for name in table.column_names))
    if times := pc.sum(again).as_py():
        more = f", as in {times} of {table.num_rows} rows" if times > 1 else ""
        where = row_at(path, pc.index(again, True).as_py())
        raise FedstageError(f"{where}: the header again{more}; delete it")


# --- other files ----------------------------------------------------------------------------------


def read_schema(path: Path) -> pa.Schema:
    """Return the columns of a Parquet file; FedstageError if it is damaged or has a name twice."""
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
