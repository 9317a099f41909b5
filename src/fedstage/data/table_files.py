"""Table files, CSV with a header or Parquet: finding them, and reading their columns.

In messages the rows of a CSV file are counted as spreadsheets do, the header as row 1, and the rows
of a Parquet file from 0.
"""

import csv
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from functools import lru_cache, reduce
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.csv as pc
import pyarrow.parquet as pq

from fedstage.data.excerpts import excerpt, quoted
from fedstage.errors import FedstageError
from fedstage.settings.data import OwnTables, ParquetData
from fedstage.storage.raw_files import folder_of
from fedstage.storage.tables import load_foreign_table

Files: TypeAlias = Sequence[tuple[Path, pa.Table]]

SUFFIXES = (".csv", ".parquet")
_OTHER_SEPARATORS = ";\t|"
#: Marks of a missing value in a CSV file, unless quoted.
_MISSING = ("", "?", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL")


def train_and_test(settings: OwnTables, folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the files for training and for testing, by name.

    With a `test_fraction`, or with a `division` and no table named ``train``, all tables are for
    training: rows are divided later.

    Raises
    ------
    FedstageError
        If the folder or the files are missing, or there are test files and a `test_fraction`.
    """
    place = folder_of(settings, folder)
    train, test = _find(place, "train"), _find(place, "test")
    if settings.test_fraction is not None and test:
        raise FedstageError(
            f"data.test_fraction = {settings.test_fraction:g}: {test[0]} is there; leave out the "
            "fraction, or take the file away"
        )
    if settings.test_fraction is not None or (settings.division is not None and not train):
        return _some(place, "", _find(place, "")), []
    if settings.division is not None:
        return train, test
    hint = "; put one there, or set data.test_fraction"
    return _some(place, "train", train, hint), _some(place, "test", test, hint)


def read_files(settings: OwnTables, folder: Path, texts: Sequence[str] = ()) -> tuple[Files, Files]:
    """Return the training tables, and all tables with the training ones first, each with its path.

    The columns `texts` of CSV files are read as texts, even where they look like numbers.
    """
    paths, test_paths = train_and_test(settings, folder)
    train = [(path, read_table(path, texts=texts)) for path in paths]
    return train, train + [(path, read_table(path, texts=texts)) for path in test_paths]


def _find(place: Path, prefix: str) -> list[Path]:
    return sorted(path for suffix in SUFFIXES for path in place.glob(f"{prefix}*{suffix}"))


def _some(place: Path, prefix: str, found: list[Path], hint: str = "") -> list[Path]:
    if not found:
        names = " or ".join(f"{prefix}*{suffix}" for suffix in SUFFIXES)
        raise FedstageError(f"{place}: has no {names}{hint}")
    return found


def read_table(
    path: Path, columns: Sequence[str] | None = None, *, texts: Sequence[str] = ()
) -> pa.Table:
    """Read the columns of a file, by default all; in CSV, the columns `texts` become texts.

    Raises
    ------
    FedstageError
        If the file is damaged or has no rows, or has the name of a column, or its header, twice; in
        CSV, also if a quote is not closed.
    """
    names = _csv_names(path) if path.suffix == ".csv" else read_schema(path).names
    for name in columns or ():
        require(path, "data.client_column", name, names)
    if path.suffix == ".csv":
        table = _read_csv(path, columns, texts)
        _refuse_header(path, table)
    else:
        table = load_foreign_table(path, columns)
    if not table.num_rows:
        raise FedstageError(f"{path}: has no rows")
    return table


def _require_once(path: Path, names: Iterable[str]) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise FedstageError(f"{path}: column {quoted(name)} is there {times} times; rename one")


def row_at(path: Path, position: int) -> str:
    """Return the file and row of the sample at a position, counted from 0, for messages."""
    return f"{path}: row {position + 2 if path.suffix == '.csv' else position}"


def require(path: Path, key: str, column: str, known: Iterable[str]) -> None:
    """Raise FedstageError unless a file has the column of a setting."""
    names = list(known)
    if column not in names:
        listed, apart = (
            ", ".join(map(excerpt, names)),
            _apart(names) if path.suffix == ".csv" else "",
        )
        raise FedstageError(
            f"{path}: {key} = {column!r}: no such column; its columns are {listed}{apart}"
        )


def _apart(names: Sequence[str]) -> str:
    """Return a hint for a header with other separators than commas; otherwise an empty string."""
    other = len(names) == 1 and set(names[0]) & set(_OTHER_SEPARATORS)
    return "; separate columns with commas, and write decimals with a point" if other else ""


def _csv_names(path: Path) -> list[str]:
    """Return the header and refuse duplicate names, which pyarrow would not notice."""
    try:
        refuse_open_quote(path)
        with path.open(encoding="utf-8-sig", newline="") as file:
            names = next(csv.reader(file), [])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        _refuse_other_encodings(path)
        raise FedstageError(f"{path}: not a CSV file with a header ({error})") from None
    _require_once(path, names)
    return names


def _refuse_other_encodings(path: Path) -> None:
    """Raise FedstageError with a file's first line that is not in UTF-8, if there is one."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                raise FedstageError(
                    f"{path}: not a CSV file in UTF-8 (line {number}: byte "
                    f"{line[error.start]:#04x}); save it as UTF-8"
                ) from None


def _refuse_ragged_rows(path: Path) -> None:
    """Raise FedstageError with the first row that has not as many fields as the header, if any."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file)
        header = next(rows, [])
        for number, row in enumerate(rows, 2):
            if row and len(row) != len(header):
                raise FedstageError(
                    f"{path}: row {number}: has {len(row)} fields, and the header has "
                    f"{len(header)}: {excerpt(','.join(row))}{_apart(header)}"
                )


def _refuse_header(path: Path, table: pa.Table) -> None:
    """Raise FedstageError if a row repeats the names of several columns, as in joined files."""
    if table.num_columns < 2 or any(kind != pa.string() for kind in table.schema.types):
        return
    again = reduce(compute.and_, (compute.equal(table[name], name) for name in table.column_names))
    if times := compute.sum(again).as_py():
        where, rows = row_at(path, compute.index(again, True).as_py()), table.num_rows
        more = f", as in {times} of {rows} rows; delete these" if times > 1 else "; delete the row"
        raise FedstageError(f"{where}: the header again{more}")


def _read_csv(path: Path, columns: Sequence[str] | None, texts: Sequence[str]) -> pa.Table:
    convert = pc.ConvertOptions(
        null_values=list(_MISSING),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        include_columns=list(columns or ()),
        column_types=dict.fromkeys(texts, pa.string()),
    )
    parse = pc.ParseOptions(newlines_in_values=True)
    try:
        table = pc.read_csv(path, convert_options=convert, parse_options=parse)
    except (pa.ArrowException, OSError) as error:
        _refuse_other_encodings(path)
        _refuse_ragged_rows(path)
        detail = str(error).splitlines()[0]
        raise FedstageError(f"{path}: not a CSV file with a header ({detail})") from None
    if any(pa.types.is_binary(kind) for kind in table.schema.types):  # as Arrow takes them
        _refuse_other_encodings(path)
    return table


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


# --- clients --------------------------------------------------------------------------------------


def owned_files(settings: OwnTables | ParquetData, folder: Path) -> list[Path]:
    """Return the files whose rows clients may have: training files, or all with a `division`."""
    if isinstance(settings, OwnTables):
        train, test = train_and_test(settings, folder)
        return [*train, *test] if settings.division is not None else train
    place = folder / settings.folder
    prefixes = ("train", "test", "valid") if settings.division is not None else ("train",)
    found = [path for prefix in prefixes for path in sorted(place.glob(f"{prefix}*.parquet"))]
    if not found:
        raise FedstageError(f"{place}: has no train*.parquet")
    return found


def count_clients(settings: OwnTables | ParquetData, folder: Path) -> int:
    """Return the number of different values in the column of clients."""
    column = settings.client_column
    assert column is not None, "the caller looks"
    paths = owned_files(settings, folder)
    return len(set().union(*(_values(path, _version(path), column) for path in paths)))


def _version(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


@lru_cache
def _values(path: Path, version: tuple[int, int], column: str) -> frozenset[Any]:
    """Return the values in a column, read once for all runs of a grid."""
    table = read_table(path, [column])
    return frozenset(table.column(column).unique().to_pylist())


# --- quotes that are not closed -------------------------------------------------------------------

_END = "end of the file"
_LONGEST = 2**31 - 1  # characters of a value; by default, the module csv takes 131,072


def refuse_open_quote(path: Path) -> None:
    """Refuse a quote that is open at the end of a CSV file.

    Only a file that has a quote is parsed, by the rules of Arrow: within a value that does not
    begin with a quote, quotes are letters.

    Raises
    ------
    FedstageError
        If a quote is not closed.
    """
    with path.open("rb") as file:
        if not any(b'"' in line for line in file):
            return
    before = csv.field_size_limit(_LONGEST)  # a value may be the rest of the file
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            # A line of its own, unless a quote is open.
            rows = csv.reader(chain(file, [_END]))
            header = next(rows)
            ((number, last),) = deque(enumerate(rows, 2), maxlen=1) or [(1, header)]
    finally:
        csv.field_size_limit(before)
    if last != [_END]:
        value = last[-1].removesuffix(_END)
        named = number > 1 and len(last) <= len(header)
        column = excerpt(header[len(last) - 1]) if named else f"column {len(last)}"
        raise FedstageError(
            f"{path}: row {number}: {column} = {quoted(value)}: a quote that is not closed; close "
            "it, or delete it"
        )
