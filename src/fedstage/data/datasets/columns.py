"""Columns of tables: labels and clients, and features as numbers or texts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fedstage.data.datasets.labelled import Labelled, Named, named
from fedstage.data.datasets.splits import Rows
from fedstage.data.excerpts import excerpt, quoted
from fedstage.data.table_files import Files, require, row_at
from fedstage.errors import FedstageError
from fedstage.settings.data import OwnTables

Values: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Column:
    """A feature of all rows: numbers or texts, with NaN or None for missing values."""

    name: str
    values: Values | list[str | None]
    places: Sequence[tuple[Path, int]]  #: each file with its number of rows
    order: Rows  #: the row of each value, counted over all files

    def taken(self, order: Rows) -> "Column":
        """Return the values in another order."""
        if isinstance(self.values, np.ndarray):
            return Column(self.name, self.values[order], self.places, self.order[order])
        texts = [self.values[row] for row in order.tolist()]
        return Column(self.name, texts, self.places, self.order[order])

    def where(self, position: int) -> str:
        """Return the file and row of a value, for messages."""
        row = int(self.order[position])
        for path, rows in self.places:
            if row < rows:
                return row_at(path, row)
            row -= rows
        raise AssertionError("a value stands in a row of a file")


def named_column(key: str, name: str, files: Files) -> Named:
    """Return the classes or clients in the column of a setting: integers, texts or booleans.

    Integers are sorted as numbers, the others as texts.

    Raises
    ------
    FedstageError
        If a file has no such column, or one of another type, or a value is missing or has a line
        break.
    """
    values: list[Any] = []
    for path, table in files:
        require(path, key, name, table.column_names)
        column, where = table.column(name), f"{path}: {key} = {name!r}"
        _refuse_missing(path, name, column)
        kind = kind_of(column.type)
        if kind not in ("integer", "text", "boolean"):
            what = "labels" if key == "data.label" else "clients"
            raise FedstageError(
                f"{where}: column is {column.type}; {what} must be texts or integers"
            )
        _refuse_line_breaks(path, name, column)
        values += column.to_pylist() if kind == "integer" else _texts(column)
        if isinstance(values[-1], int) != isinstance(values[0], int):
            raise FedstageError(f"{where}: column is {column.type}, unlike that of {files[0][0]}")
    return named(values)


def text_column(key: str, name: str, files: Files) -> list[str]:
    """Return the texts in the column of a setting.

    Raises
    ------
    FedstageError
        If a file has no such column, or one of another type, or a text is missing.
    """
    texts: list[str] = []
    for path, table in files:
        require(path, key, name, table.column_names)
        column = table.column(name)
        if kind_of(column.type) != "text":
            raise FedstageError(f"{path}: {key} = {name!r}: column is {column.type}; must be text")
        _refuse_missing(path, name, column)
        texts += column.to_pylist()
    return texts


def _refuse_missing(path: Path, name: str, column: pa.ChunkedArray) -> None:
    if column.null_count:
        where = row_at(path, pc.index(column.is_null(), True).as_py())
        times, rows = column.null_count, len(column)
        more = f", as in {times} of {rows} rows" if times > 1 else ""
        raise FedstageError(f"{where}: {excerpt(name)}: missing{more}; a value is required")


def _refuse_line_breaks(path: Path, name: str, column: pa.ChunkedArray, else_: str = "") -> None:
    """Refuse a text of several lines: a stray quote makes one value of all rows up to the next."""
    if kind_of(column.type) != "text":
        return
    broken = pc.match_substring_regex(column.cast(pa.string()), "[\r\n]")
    position = pc.index(broken, True).as_py()
    if position >= 0:
        quote = ", or the quote that begins the value" if path.suffix == ".csv" else ""
        raise FedstageError(
            f"{row_at(path, position)}: {excerpt(name)} = {quoted(column[position].as_py())}: a "
            f"line break in a value; delete it{quote}{else_}"
        )


def labelled_rows(settings: OwnTables, train: Files, every: Files) -> Labelled:
    """Return the label and client of each row, with the rows that are drawn for testing last.

    If no test file has a column of clients, only the clients of training rows are known.
    """
    labels = named_column("data.label", settings.label, every)
    clients, column = None, settings.client_column
    if column is not None:
        tested = any(column in table.column_names for _, table in every[len(train) :])
        # A division takes clients from all rows.
        owned = every if tested or settings.division is not None else train
        clients = named_column("data.client_column", column, owned)
    rows, trained = len(labels.numbers), sum(table.num_rows for _, table in train)
    found = Labelled(labels, clients, trained, np.arange(rows))
    if settings.test_fraction is None:
        return found
    return found.divided(settings.test_fraction, settings.split_seed)


def feature_column(name: str, files: Files, categorical: bool) -> Column:
    """Return a feature: numbers, or categories for texts, booleans and `categorical` columns.

    Raises
    ------
    FedstageError
        If its type is a different one, or differs between files, or if there are texts among
        numbers, or line breaks in texts.
    """
    kinds = {}
    for path, table in files:
        kind = kind_of(table.column(name).type)
        if kind is None:
            raise FedstageError(
                f"{path}: column {quoted(name)} is {table.column(name).type}: must be numbers, "
                "texts or booleans; leave it out with data.drop"
            )
        _refuse_line_breaks(path, name, table.column(name), ", or leave it out with data.drop")
        if kind != "empty":
            kinds[kind if categorical or kind in ("text", "boolean") else "number"] = path
    places = [(path, table.num_rows) for path, table in files]
    columns = [table.column(name) for _, table in files]
    order = np.arange(sum(rows for _, rows in places))
    categories = categorical or bool(kinds.keys() & {"text", "boolean"})
    texts = [text for column in columns for text in _texts(column)] if categories else []
    column = Column(name, texts, places, order)
    if not categorical:
        _check_strays(column, texts)
    if len(kinds) > 1:
        told = " and ".join(f"{kind} in {path}" for kind, path in kinds.items())
        raise FedstageError(f"column {quoted(name)}: {told}; must be of one type")
    if categories:
        return column
    return Column(name, np.concatenate([_numbers(values) for values in columns]), places, order)


def _check_strays(column: Column, texts: Sequence[str | None]) -> None:
    """Refuse a comma in numbers, or a text among them: each number would become a category."""
    strays = [row for row, text in enumerate(texts) if text is not None and not _is_number(text)]
    commas = [row for row in strays if _is_number(str(texts[row]).replace(",", ""))]
    numbers = sum(text is not None for text in texts) - len(strays)

    def told(row: int) -> str:
        return f"{column.where(row)}: {excerpt(column.name)} = {quoted(str(texts[row]))}"

    if commas and numbers + 2 * len(commas) >= len(strays):
        raise FedstageError(
            f"{told(commas[0])}: a comma in a number; write it with a decimal point only, or name "
            "the column in data.categorical"
        )
    if strays and numbers >= len(strays):
        raise FedstageError(
            f"{told(strays[0])}: a text among numbers; give a number, or name the column in "
            "data.categorical"
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


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


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    texts: list[str | None] = column.cast(pa.string()).to_pylist()
    return texts


def _numbers(column: pa.ChunkedArray) -> Values:
    # By way of Python: to_numpy imports pandas.
    return np.array([math.nan if v is None else float(v) for v in column.to_pylist()], np.float64)
