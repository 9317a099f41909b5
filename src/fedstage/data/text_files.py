"""Tables as CSV or TSV with a header, read by Arrow, and why such a file is refused.

In messages rows are counted as spreadsheets do, the header as row 1, and the rows of other files
from 0. Arrow reads rather than pandas: it tells a quoted NA from a missing value and a short row
from one with empty cells. One file because the reasons for which a file is refused follow from how
it is read.
"""

import csv
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from fedstage.data.excerpts import excerpt, quoted
from fedstage.errors import FedstageError

File: TypeAlias = tuple[Path, pa.Table]
Files: TypeAlias = Sequence[File]

#: The separator of each kind of text file.
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_OTHER_SEPARATORS = ";\t|"
#: Marks of a missing value in a text file, unless quoted.
_MISSING = ("", "?", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL")
_BLOCK = 2**20  # bytes that Arrow parses at a time, unless a row is longer
_LARGEST_BLOCK = 2**31 - 1
LINE_BREAK = "[\r\n]"
NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_PADDED = "[+-]?0[0-9]"
_WITHIN_NUMBERS = np.isin(np.arange(256), [*b"0123456789.eE+-"])
_SIGNS = np.isin(np.arange(256), [*b"+-"])
_AT_CELLS = np.isin(np.arange(256), [*b',\t\r\n"'])
_CACHED = 2**16  # bytes
_BEGIN = 1000  # rows
_NUMBERS = (pa.int64(), pa.float64())  # types of columns that Arrow takes for numbers
_END = "1.7976931348623157e+308"  # in all cells of a row: the largest number, and as Python has it


def is_text(path: Path) -> bool:
    """Whether a file is CSV or TSV."""
    return path.suffix.lower() in _SEPARATORS


def row_at(files: Files, row: int) -> str:
    """Return the file and row of a row of all files, counted from 0, for messages."""
    while row >= files[0][1].num_rows:
        row, files = row - files[0][1].num_rows, files[1:]
    path = files[0][0]
    return f"{path}: row {_in_text(path, row + 2) if is_text(path) else row}"


def _in_text(path: Path, number: int) -> int:
    """Return which row of a text file is the one of this number, if empty rows do not count."""
    csv.field_size_limit(_LARGEST_BLOCK)
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = enumerate(csv.reader(file, delimiter=_SEPARATORS[path.suffix.lower()]), 1)
        return next(islice((place for place, cells in rows if cells), number - 1, None), number)


def apart(path: Path, names: Sequence[str]) -> str:
    """Return a hint for a header with other separators than commas; otherwise an empty string."""
    other = path.suffix.lower() == ".csv" and len(names) == 1 and {*names[0]} & {*_OTHER_SEPARATORS}
    return "; separate columns with commas, and write decimals with a point" if other else ""


def require_once(path: Path, names: Sequence[str]) -> None:
    """Raise FedstageError if a file has a column twice."""
    for name, times in Counter(names).items():
        if times > 1:
            raise FedstageError(f"{path}: column {quoted(name)} is there {times} times; rename one")


def read_header(path: Path) -> list[str]:
    """Return the names of the columns; FedstageError if a name is there twice, or none is."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            separator = _SEPARATORS[path.suffix.lower()]
            lines = csv.reader(file, delimiter=separator, strict=True)
            names = next(line for line in lines if line)  # Arrow leaves out empty lines, too
    except (OSError, UnicodeDecodeError, csv.Error, StopIteration) as error:
        raise _no_table(path, error) from None
    require_once(path, names)
    return names


def _no_table(path: Path, error: Exception) -> FedstageError:
    detail = re.sub("In CSV column #.*?: ", "", str(error).partition("\n")[0]) or "empty"
    detail = "a quote that is not closed" if "end of data" in detail else detail
    return FedstageError(f"{path}: not a CSV file in UTF-8 with a header ({detail})")


def read_text(path: Path, names: list[str], texts: Collection[str], columns: list[str]) -> pa.Table:
    """Return columns, with numbers in those, not of `texts`, whose cells all are numbers.

    A column that begins with numbers is read as numbers. Where that fails it is read as texts,
    which then are tested. One row more is read, which a quote that is not closed swallows.
    """
    separator = _SEPARATORS[path.suffix.lower()]
    content = _with_end(path, f"\n{separator.join([_END] * len(names))}\n".encode())
    with ThreadPoolExecutor(2) as pool:
        letters = np.frombuffer(content, np.uint8)
        padded = any(pool.map(partial(_has_padded, letters), range(2)))
        inner = b'"' in content and any(pool.map(partial(_has_inner_quote, letters), range(2)))
    as_texts, block, parallel = {*columns} if padded else {*texts}, _BLOCK, True
    while True:
        wrong = list[Any]()
        try:
            table = _parsed(content, separator, columns, as_texts, block, parallel, wrong)
        except (pa.ArrowException, UnicodeDecodeError) as error:
            largest = min(len(content), _LARGEST_BLOCK)
            if no_number := re.match(
                r"In CSV column #(\d+): CSV conversion error to d", str(error)
            ):
                # Each takes a reading of its own: with several, all columns are tested instead.
                others = as_texts - {*texts}
                as_texts |= {*columns} if others else {names[int(no_number[1])]}
            elif "block" in str(error) and block < largest:
                block = largest
            elif parallel:
                parallel = False
            else:
                raise _no_table(path, error) from None
            continue
        last = table.slice(max(0, len(table) - 1)).to_pylist()
        ended = {str(value) for row in last for value in row.values()} == {_END}
        if (ended and not wrong) or not parallel:
            break
        parallel = False  # in messages, rows then have numbers
    table = table.slice(0, len(table) - ended)
    if not ended:
        place = next((row.number for row in wrong if _END in row.text), len(table) + 1)
        raise FedstageError(f"{path}: row {place}: a quote that is not closed; delete it")
    if wrong:
        row, more = wrong[0], f", as in {len(wrong)} rows" if len(wrong) > 1 else ""
        fault = f"has {row.actual_columns} fields, and the header has {row.expected_columns}{more}"
        shown = f"{excerpt(row.text)}{apart(path, names)}"
        raise FedstageError(f"{path}: row {_in_text(path, row.number)}: {fault}: {shown}")
    with ThreadPoolExecutor(2) as pool:
        tested = pool.map(partial(_tested, {*texts}, padded), columns, table.columns)
        table = pa.table(dict(zip(columns, tested, strict=True)))
    _refuse_header(path, table)
    if b'"' in content:
        inner |= b"\\" in content and b'\\"' in content  # the latter alone is slower
        _refuse_rows_in_values(path, names, table, inner)
    return table


def _parsed(
    content: bytearray,
    separator: str,
    columns: list[str],
    texts: Collection[str],
    block: int,
    parallel: bool,
    wrong: list[Any],
) -> pa.Table:
    """Return numbers for columns, not of `texts`, that begin with numbers, and texts for others.

    Rows with another number of cells are added to `wrong`.
    """

    def skip(row: Any) -> str:
        wrong.append(row)
        return "skip"

    reading = pa.csv.ReadOptions(use_threads=parallel, block_size=block)
    parsing = pa.csv.ParseOptions(
        delimiter=separator, newlines_in_values=b'"' in content, invalid_row_handler=skip
    )
    converting = pa.csv.ConvertOptions(
        null_values=list(_MISSING), strings_can_be_null=True, quoted_strings_can_be_null=False,
        include_columns=columns,
    )  # fmt: skip
    begin = pa.csv.open_csv(pa.BufferReader(content), reading, parsing, converting).schema
    wrong.clear()
    numbers = {column.name for column in begin if column.type in _NUMBERS} - {*texts}
    converting.column_types = {
        name: pa.float64() if name in numbers else pa.string() for name in columns
    }
    pool = pa.system_memory_pool()  # the fastest one for new memory
    return pa.csv.read_csv(pa.BufferReader(content), reading, parsing, converting, pool)


def _with_end(path: Path, end: bytes) -> bytearray:
    """Return the bytes of a file and an end, of which there is one copy."""
    content = bytearray(path.stat().st_size + len(end))
    with path.open("rb") as file:
        size = file.readinto(content)
    content[size:] = end
    return content


def _tested(texts: set[str], padded: bool, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as numbers if all cells are, and it is none of `texts`."""
    if column.type != pa.string():
        return column
    may_be = name not in texts and _numbers(column[:_BEGIN], padded) is not None
    numbers = _numbers(column, padded) if may_be else None
    return _present(column) if numbers is None else numbers


def _parts(letters: NDArray[np.uint8], half: int, more: int) -> Iterator[NDArray[np.uint8]]:
    """Yield every other part of a file, as the processor caches it, with letters of the next."""
    for start in range(half * _CACHED, len(letters), 2 * _CACHED):
        yield letters[start : start + _CACHED + more]


def _has_padded(letters: NDArray[np.uint8], half: int) -> bool:
    """Whether there may be a number with zeros before it, of which a column is of texts."""
    for part in _parts(letters, half, 3):  # a zero has two letters before, and one after
        zeros = np.flatnonzero((part[2:-1] == ord("0")) & (part[3:] - ord("0") < 10))
        within = _WITHIN_NUMBERS[part[zeros + 1]]
        unsigned = ~_SIGNS[part[zeros + 1]]
        if not (within & (unsigned | _WITHIN_NUMBERS[part[zeros]])).all():
            return True
    return False


def _has_inner_quote(letters: NDArray[np.uint8], half: int) -> bool:
    """Whether a quote has other letters than quotes, separators and line breaks on both sides."""
    for part in _parts(letters, half, 2):
        quotes = np.flatnonzero(part[1:-1] == ord('"'))
        if not (_AT_CELLS[part[quotes]] | _AT_CELLS[part[quotes + 2]]).all():
            return True
    return False


def _numbers(column: pa.ChunkedArray, padded: bool) -> pa.ChunkedArray | None:
    """Return texts as numbers, None if one is none, or may be `padded` with zeros, and is."""
    try:
        numbers = column.cast(pa.float64())
    except pa.ArrowInvalid:
        try:
            column = _present(pc.utf8_trim_whitespace(column))
            numbers = column.cast(pa.float64())
        except pa.ArrowInvalid:
            return None
    is_padded = padded and pc.any(pc.match_substring_regex(column, f"^{_PADDED}")).as_py()
    return None if is_padded else numbers


def _present(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts, with null for those that are empty."""
    empty = pc.or_(pc.utf8_is_space(column), pc.equal(pc.binary_length(column), 0))
    if not pc.any(empty).as_py():
        return column
    return pc.if_else(empty, pa.nulls(1, pa.string())[0], column)  # pa.scalar imports pandas


def _refuse_header(path: Path, table: pa.Table) -> None:
    """Raise FedstageError if a row repeats the names of several columns, as in joined files."""
    if table.num_columns < 2 or any(kind != pa.string() for kind in table.schema.types):
        return
    again = reduce(pc.and_, (pc.equal(table[name], name) for name in table.column_names))
    if times := pc.sum(again).as_py():
        more = f", as in {times} of {table.num_rows} rows" if times > 1 else ""
        where = row_at([(path, table)], pc.index(again, True).as_py())
        raise FedstageError(f"{where}: the header again{more}; delete it")


def _refuse_rows_in_values(path: Path, names: list[str], table: pa.Table, inner: bool) -> None:
    """Refuse a value with a line that looks like a row, or a quote within a quoted value.

    A stray quote makes one value of all rows up to the next quote, in whatever column.
    """
    separator = _SEPARATORS[path.suffix.lower()]
    broken = {
        name: rows
        for name in (field.name for field in table.schema if field.type == pa.string())
        if any(_has_break(chunk) for chunk in table[name].chunks)
        for rows in [pc.match_substring_regex(table[name], LINE_BREAK)]
        if pc.any(rows).as_py()
    }
    tests = {name: _test_of(table[name]) for name in table.column_names} if broken else {}
    for name, rows in broken.items():
        others = [(names.index(one), fits) for one, fits in tests.items() if fits and one != name]
        for row, text in enumerate(pc.if_else(rows, table[name], "").to_pylist()):
            lines = [line.split(separator) for line in (text or "").splitlines()]
            if _has_rows(lines, names.index(name), len(names), others):
                fault = f"{excerpt(name)} = {quoted(text)}: rows in a value; delete its quotes"
                raise FedstageError(f"{row_at([(path, table)], row)}: {fault}")
    if broken or inner:
        _refuse_quotes_in_quotes(path, separator)


def _has_break(texts: pa.StringArray) -> bool:
    """Whether there may be a line break: much faster than looking at each text."""
    letters = texts.buffers()[2].to_pybytes() if len(texts) else b""
    return b"\n" in letters or b"\r" in letters


def _has_rows(
    lines: list[list[str]],
    place: int,
    width: int,
    tests: Iterable[tuple[int, Callable[[str], bool]]],
) -> bool:
    """Whether lines of a value, as cells, are rows, or the end of one and the start of the next.

    The value is in the column `place` of `width`; `tests` are of other columns, of which half must
    fit, since a row that was swallowed may have a value of its own.
    """

    def tested(cells: list[str], start: int) -> list[bool]:
        return [fits(cells[at - start]) for at, fits in tests if start <= at < start + len(cells)]

    whole = (tested(cells, 0) for cells in lines[1:] if len(cells) == width)
    parts = list[bool]()
    if len(lines) > 1 and (len(lines[0]), len(lines[-1])) == (width - place, place + 1):
        parts = tested(lines[0], place) + tested(lines[-1], 0)
    return any(own and 2 * sum(own) >= len(own) for own in (*whole, parts))


def _test_of(column: pa.ChunkedArray) -> Callable[[str], bool] | None:
    """Return whether a text may be a value of a column; None if any may."""
    if column.type != pa.string():
        return lambda text: text in _MISSING or re.fullmatch(NUMBER, text.strip()) is not None
    known = {*column.unique().to_pylist(), *_MISSING}
    return known.__contains__ if 2 * len(known) <= len(column) + len(_MISSING) else None


def _refuse_quotes_in_quotes(path: Path, separator: str) -> None:
    csv.field_size_limit(_LARGEST_BLOCK)
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=separator, strict=True)
        try:
            for _ in reader:
                pass
        except csv.Error:
            fault = "a quote within a value in quotes; delete it, or write two in place of it"
            raise FedstageError(f"{path}: line {reader.line_num}: {fault}") from None
