"""Columns of tables: labels, clients and groups by name, and texts."""

import logging
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedstage.data.datasets.labelled import Labelled, Named
from fedstage.data.excerpts import excerpt, listed, normal, quoted
from fedstage.data.table_files import Files, is_text, require, row_at
from fedstage.errors import FedstageError, each
from fedstage.settings.data import OfHub, OwnTables, ParquetData

_LOGGER = logging.getLogger(__name__)

NUMBER = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")


def kind_of(kind: pa.DataType) -> str | None:
    """Return what a column holds: integer, number, text, boolean, empty; None for anything else."""
    if pa.types.is_dictionary(kind):
        return kind_of(kind.value_type)
    tests = {
        "integer": pa.types.is_integer,
        "number": lambda kind: pa.types.is_floating(kind) or pa.types.is_decimal(kind),
        "text": lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind),
        "boolean": pa.types.is_boolean,
        "empty": pa.types.is_null,
    }
    return next((name for name, is_one in tests.items() if is_one(kind)), None)


def is_number(text: str) -> bool:
    """Whether a text is a number, without leading zeros."""
    pattern = rf"(?![-+]?0\d){NUMBER}|[-+]?(inf|nan)(inity)?"
    return re.fullmatch(pattern, text.strip(), re.IGNORECASE) is not None


def coded(what: str, columns: Sequence[pa.ChunkedArray], *, numeric: bool = False) -> Named:
    """Return values of all files as positions among their sorted names, -1 where empty.

    Names have Unicode's normal form; `what` has names in other forms, too, is told. Integers are
    sorted as numbers.
    """
    chunks = [part for column in columns for part in column.cast(pa.large_string()).chunks]
    found = pa.chunked_array(chunks, pa.large_string()).dictionary_encode().combine_chunks()
    written = [normal(text) if text.strip() else None for text in found.dictionary.to_pylist()]
    counts = Counter(name for name in written if name is not None)
    if several := [quoted(name) for name, forms in counts.items() if forms > 1]:
        told = listed(several)
        _LOGGER.warning("%s: in several Unicode forms, read as one: %s", what, told)
    names = sorted(counts, key=int if numeric else None)
    places = {name: place for place, name in enumerate(names)}
    numbers = np.array([-1 if name is None else places[name] for name in [*written, None]])
    return Named(numbers[np.from_dlpack(found.indices.fill_null(len(written)))], tuple(names))


def named_column(key: str, name: str, files: Files) -> Named:
    """Return the classes, clients or groups in the column of a setting: integers, texts, booleans.

    Integers are sorted as numbers, the others as texts.

    Raises
    ------
    FedstageError
        If a file has no such column, or one of another type, or a value is missing or has a line
        break.
    """

    def whole(file: tuple[Path, pa.Table]) -> bool:
        path, table = file
        require(path, key, name, table.column_names)
        column, what = table.column(name), f"{key.partition('.')[2].removesuffix('_column')}s"
        kind = kind_of(column.type)
        _refuse_missing(path, name, column)
        refuse_line_breaks(path, name, column)
        texts = column.unique().cast(pa.string()).to_pylist() if is_text(path) else []
        integers = kind == "integer" or (is_text(path) and all(map(_WHOLE.fullmatch, texts)))
        plain = integers or all(text.isascii() and text.isdecimal() for text in texts)
        double = not plain and all(map(is_number, texts))
        if kind not in ("integer", "text", "boolean") or double:
            fault = f"column is {'double' if double else column.type}"
            raise FedstageError(
                f"{path}: {key} = {name!r}: {fault}; {what} must be texts or integers"
            )
        return integers

    numeric = all(each(whole, files))
    columns = [table.column(name) for _, table in files]
    return coded(f"{key} = {name!r}", columns, numeric=numeric)


def text_column(key: str, name: str, files: Files) -> list[str]:
    """Return the texts in the column of a setting.

    Raises
    ------
    FedstageError
        If a file has no such column, or one of another type, or a text is missing.
    """

    def read(file: tuple[Path, pa.Table]) -> list[str]:
        path, table = file
        require(path, key, name, table.column_names)
        column = table.column(name)
        if kind_of(column.type) != "text":
            raise FedstageError(f"{path}: {key} = {name!r}: column is {column.type}; must be text")
        _refuse_missing(path, name, column)
        texts: list[str] = column.cast(pa.large_string()).to_pylist()
        return texts

    return [text for texts in each(read, files) for text in texts]


def _refuse_missing(path: Path, name: str, column: pa.ChunkedArray) -> None:
    empty = column.is_null()
    if kind_of(column.type) == "text":
        bare = pc.utf8_trim_whitespace(column.cast(pa.large_string()))
        empty = pc.or_(empty, pc.fill_null(pc.equal(bare, ""), True))
    if times := pc.sum(empty).as_py():
        where = row_at(path, pc.index(empty, True).as_py())
        more = f", as in {times} of {len(column)} rows" if times > 1 else ""
        raise FedstageError(f"{where}: {excerpt(name)}: missing{more}; a value is required")


def refuse_line_breaks(path: Path, name: str, column: pa.ChunkedArray, else_: str = "") -> None:
    """Refuse a text of several lines: a stray quote makes one value of all rows up to the next."""
    if kind_of(column.type) != "text":
        return
    broken = pc.match_substring_regex(column.cast(pa.string()), "[\r\n]")
    position = pc.index(broken, True).as_py()
    if position >= 0:
        quote = ", or the quote that begins the value" if is_text(path) else ""
        value = f"{excerpt(name)} = {quoted(column[position].as_py())}"
        fault = f"a line break in a value; delete it{quote}{else_}"
        raise FedstageError(f"{row_at(path, position)}: {value}: {fault}")


def labelled_rows(settings: OwnTables | ParquetData | OfHub, train: int, files: Files) -> Labelled:
    """Return the names of each row, with the rows that are drawn for testing last.

    The first `train` of the files are for training. If no test file has a column of clients or
    groups, only training rows have known ones.
    """
    tested = {name for _, table in files[train:] for name in table.column_names}

    def of(key: str) -> Named | None:
        column = getattr(settings, key)
        # A division takes clients from all rows.
        owned = files if column in tested or settings.division is not None else files[:train]
        return named_column(f"data.{key}", column, owned) if column is not None else None

    labels, clients, groups = each(of, ["label", "client_column", "group_column"])
    assert labels is not None, "there is a column of labels"
    trained = sum(table.num_rows for _, table in files[:train])
    order = np.arange(len(labels.numbers))
    return Labelled(labels, clients, groups, trained, order).drawn(settings)
