"""Text files of tables, CSV or TSV with a header, read block by block.

Arrow reads them rather than pandas: it tells a quoted NA from a missing value and a short row from
one with empty cells, and needs half the memory. All cells are read as texts; a column becomes
numbers if all of its cells are.
"""

import csv
from collections.abc import Collection, Sequence
from functools import reduce
from io import FileIO
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.csv as pc

from fedstage.data.excerpts import excerpt, quoted
from fedstage.errors import FedstageError

#: The separator of each kind of text file.
SEPARATORS = {".csv": ",", ".tsv": "\t"}
_OTHER_SEPARATORS = ";\t|"
#: Marks of a missing value in a text file, unless quoted.
_MISSING = ("", "?", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL")
_BLOCK = 16 * 2**20  # bytes that are read at a time, unless a row is longer
_LARGEST_BLOCK = 2**31 - 1
_END = "\x1eend of the file\x1e"


def is_text(path: Path) -> bool:
    """Whether a file is CSV or TSV."""
    return path.suffix.lower() in SEPARATORS


def row_at(path: Path, position: int) -> str:
    """Return the file and row of the sample at a position, counted from 0, for messages."""
    return f"{path}: row {position + 2 if is_text(path) else position}"


def apart(path: Path, names: Sequence[str]) -> str:
    """Return a hint for a header with other separators than commas; otherwise an empty string."""
    other = path.suffix.lower() == ".csv" and len(names) == 1 and {*names[0]} & {*_OTHER_SEPARATORS}
    return "; separate columns with commas, and write decimals with a point" if other else ""


class _Ended(FileIO):
    """A file with one more row, which a quote that is not closed would swallow.

    Arrow reads ahead in a thread: a file that is closed meanwhile must not be taken for the next.
    """

    def __init__(self, path: Path, last: str) -> None:
        self._lock, self._last = Lock(), last.encode()
        super().__init__(path)

    def read(self, size: int | None = -1) -> bytes:
        with self._lock:
            found = super().read(size)
            if not found:
                found, self._last = self._last, b""
            return found

    def close(self) -> None:
        with self._lock:
            super().close()


def read_header(path: Path) -> list[str]:
    """Return the header of a text file; Arrow would not notice that a name is there twice."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            names = next(csv.reader(file, delimiter=SEPARATORS[path.suffix.lower()], strict=True))
    except (OSError, UnicodeDecodeError, csv.Error, StopIteration) as error:
        _refuse_other_encodings(path)
        detail = "a quote that is not closed" if "end of data" in str(error) else error
        raise FedstageError(f"{path}: not a CSV file with a header ({detail or 'empty'})") from None
    return names


def read_text(
    path: Path, names: Sequence[str], columns: Sequence[str], texts: Collection[str]
) -> pa.Table:
    """Return the columns of a text file whose header is `names`; see `read_table`."""
    kept, separator = {*texts}, SEPARATORS[path.suffix.lower()]
    reading = pc.ReadOptions(use_threads=False, block_size=_BLOCK)
    parsing = pc.ParseOptions(delimiter=separator, newlines_in_values=True)
    converting = pc.ConvertOptions(
        null_values=list(_MISSING), strings_can_be_null=True, quoted_strings_can_be_null=False,
        include_columns=list(columns), column_types=dict.fromkeys(names, pa.string()),
    )  # fmt: skip
    while True:
        try:
            with _Ended(path, f"\n{separator.join([_END] * len(names))}\n") as file:
                options = (reading, parsing, converting)
                table = _read_blocks(path, file, columns, kept, options)
            if table is not None:
                return table
        except (pa.ArrowException, OSError) as error:
            most = min(path.stat().st_size, _LARGEST_BLOCK)
            if "block" in str(error) and reading.block_size < most:
                reading.block_size = min(8 * reading.block_size, _LARGEST_BLOCK)
                continue
            _refuse_other_encodings(path)
            detail = str(error).splitlines()[0]
            raise FedstageError(f"{path}: not a CSV file with a header ({detail})") from None


def _read_blocks(
    path: Path, file: FileIO, columns: Sequence[str], texts: set[str], options: Sequence[Any]
) -> pa.Table | None:
    """Return the table; None if a column is added to `texts` after some blocks were numbers."""
    wrong: list[Any] = []

    def skip(row: Any) -> str:
        wrong.append(row)
        return "skip"

    reading, parsing, converting = options
    parsing.invalid_row_handler = skip
    reader = pc.open_csv(pa.PythonFile(file, "r"), reading, parsing, converting)
    parts: dict[str, list[pa.Array]] = {name: [] for name in columns}
    ended, rows, again, last = False, 1, False, ""
    for batch in reader:
        if batch.num_rows and batch.column(0)[-1].as_py() == _END:
            ended, batch = True, batch.slice(0, batch.num_rows - 1)
        rows += batch.num_rows
        for cells in batch.slice(max(batch.num_rows - 1, 0)).to_pylist():
            last = next((cell for cell in reversed(cells.values()) if cell), "")
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            numbers = None if name in texts else _numbers(column)
            if numbers is None and name not in texts:
                texts.add(name)
                again |= any(map(len, parts[name]))
            parts[name].append(_present(column) if numbers is None else numbers)
    if not ended and wrong and _END in wrong[-1].text:
        rows, last = wrong[-1].number, wrong.pop().text
    if wrong:
        row, more = wrong[0], f", as in {len(wrong)} rows" if len(wrong) > 1 else ""
        raise FedstageError(
            f"{path}: row {row.number}: has {row.actual_columns} fields, and the header has "
            f"{row.expected_columns}{more}: {excerpt(row.text)}"
            f"{apart(path, [*converting.column_types])}"
        )
    if not ended:
        value = quoted(last.partition(f"\n{_END}")[0])
        fault = f"{value}: a quote that is not closed; close it, or delete it"
        raise FedstageError(f"{path}: row {rows}: {fault}")
    if again:
        return None
    kinds = {name: pa.string() if name in texts else pa.float64() for name in columns}
    return pa.table({n: pa.chunked_array([part for part in parts[n] if len(part)], kind)
                     for n, kind in kinds.items()})  # fmt: skip


def _numbers(column: pa.Array) -> pa.Array | None:
    """Return texts as numbers, None if one is none, or has zeros before it."""
    try:
        numbers = column.cast(pa.float64())
    except pa.ArrowInvalid:
        try:
            column = _present(compute.utf8_trim_whitespace(column))
            numbers = column.cast(pa.float64())
        except pa.ArrowInvalid:
            return None
    for low, high in (("00", "0:"), ("-00", "-0:"), ("+00", "+0:")):  # of 0 and a digit
        zeros = compute.and_(compute.greater_equal(column, low), compute.less(column, high))
        if compute.any(zeros).as_py():
            return None
    return numbers


def _present(column: pa.Array) -> pa.Array:
    """Return texts, with null for those that are empty."""
    empty = compute.equal(compute.utf8_trim_whitespace(column), "")
    return compute.if_else(empty, pa.scalar(None, pa.string()), column)


def _refuse_other_encodings(path: Path) -> None:
    """Raise FedstageError with a file's first line that is not in UTF-8, if there is one."""
    content = path.read_bytes() if path.is_file() else b""
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line, byte = content.count(b"\n", 0, error.start) + 1, content[error.start]
        fault = f"not a CSV file in UTF-8 (line {line}: byte {byte:#04x}); save it as UTF-8"
        raise FedstageError(f"{path}: {fault}") from None


def refuse_header(path: Path, table: pa.Table) -> None:
    """Raise FedstageError if a row repeats the names of several columns, as in joined files."""
    if table.num_columns < 2 or any(kind != pa.string() for kind in table.schema.types):
        return
    again = reduce(compute.and_, (compute.equal(table[name], name) for name in table.column_names))
    if times := compute.sum(again).as_py():
        where, rows = row_at(path, compute.index(again, True).as_py()), table.num_rows
        more = f", as in {times} of {rows} rows; delete these" if times > 1 else "; delete the row"
        raise FedstageError(f"{where}: the header again{more}")
