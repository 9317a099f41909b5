"""Columns of features: numbers, or texts as categories."""

import logging
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fedstage.data.datasets.columns import NUMBER, coded, is_number, kind_of, refuse_line_breaks
from fedstage.data.datasets.labelled import Named
from fedstage.data.excerpts import alike, excerpt, have, listed, quoted
from fedstage.data.layouts import are_splits
from fedstage.data.table_files import Files, row_at
from fedstage.errors import FedstageError, each

_LOGGER = logging.getLogger(__name__)

Values: TypeAlias = NDArray[np.float64]


class Column(NamedTuple):
    """A feature of the rows of all files: numbers, NaN where missing, or categories."""

    name: str
    values: Values | Named
    places: Sequence[tuple[Path, int]]  #: each file with its number of rows

    @property
    def missing(self) -> NDArray[np.bool_]:
        """A mask, bool [n], of the rows without a value."""
        own = self.values
        return own.numbers < 0 if isinstance(own, Named) else np.isnan(own)

    def where(self, row: int) -> str:
        """Return the file and row of a value, for messages."""
        for path, rows in self.places:
            if row < rows:
                return row_at(path, row)
            row -= rows
        raise AssertionError("a value stands in a row of a file")


#: What a text certainly is instead of a number, or a date.
_CERTAIN = {
    "a comma in a number; write it with a decimal point only":
        re.compile(r"[-+]?\d[\d.]*,[\d.,]*\d"),
    "a minus or digit that is not ASCII; write numbers with - and 0 to 9":
        re.compile(r"(?=.*[^\x00-\x7f])[-+\u2010-\u2015\u2212\ufe63\uff0d]?\s*\d+[.,]?\d*"),
    "spaces in a number; leave them out": re.compile(r"[-+]?\d+(\s\d{3})+([.,]\d+)?"),
    "a date; make it numbers, or leave it out with data.drop":
        re.compile(r"(\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.]\d{4})([T ].*)?"),
}  # fmt: skip
#: What it may be, although it is a category.
_POSSIBLE = {
    "numbers with leading zeros": re.compile(r"[-+]?0\d+(\.\d*)?"),
    "two numbers": re.compile(rf"{NUMBER}\s*[/:\u2013-]\s*{NUMBER}"),
    "numbers with a unit or sign":
        re.compile(rf"[^\w\s.-]{{0,2}}\s*(?:{NUMBER}|\d[\d.,]*)\s*(?!\d)[^\W\d_]*[^\w\s]?[^\s,]{{0,8}}"),
}  # fmt: skip


def feature_columns(names: Sequence[str], files: Files, categorical: Iterable[str]) -> list[Column]:
    """Return features: numbers, or categories for texts, booleans and `categorical` columns.

    Columns of categories that look like numbers are told.

    Raises
    ------
    FedstageError
        If a type is a different one, or differs between files, or if there are texts among
        numbers, or line breaks in texts.
    """
    odd: dict[str, list[str]] = defaultdict(list)
    columns = each(partial(_feature, files, {*categorical}, odd), names)
    for kind, examples in odd.items():
        which = have(examples, "column", "columns")
        _LOGGER.warning("%s categories that are %s: %s", which, kind, listed(examples))
    return columns


def _feature(files: Files, categorical: set[str], odd: dict[str, list[str]], name: str) -> Column:
    def kind(file: tuple[Path, pa.Table]) -> tuple[Path, str]:
        path, table = file
        column = table.column(name)
        found = kind_of(column.type)
        if found is None:
            must = "must be numbers, texts or booleans; leave it out with data.drop"
            raise FedstageError(f"{path}: column {quoted(name)} is {column.type}: {must}")
        refuse_line_breaks(path, name, column, ", or leave it out with data.drop")
        kept = name in categorical or found in ("text", "boolean", "empty")
        return path, found if kept else "number"

    kinds = {kind: path for path, kind in each(kind, files) if kind != "empty"}
    places = [(path, table.num_rows) for path, table in files]
    columns = [table.column(name) for _, table in files]
    if name not in categorical and not kinds.keys() & {"text", "boolean"}:
        return Column(name, np.concatenate([numbers_of(values) for values in columns]), places)
    values = coded(f"column {quoted(name)}", columns)
    column = Column(name, values, places)
    if name not in categorical:
        _check_strays(column, values, odd)
    if len(kinds) > 1:
        told = " and ".join(f"{kind} in {path}" for kind, path in kinds.items())
        raise FedstageError(f"column {quoted(name)}: {told}; must be of one type")
    if are_splits(values.names):
        told = listed([*values.names])
        _LOGGER.warning("column %s has %s: if these are splits, put the rows into a file for each, "
                        "or leave it out with data.drop", quoted(name), told)  # fmt: skip
    for line in alike(f"categories of {quoted(name)}", values.names):
        _LOGGER.warning("%s", line)
    return column


def _check_strays(column: Column, values: Named, odd: dict[str, list[str]]) -> None:
    """Refuse texts among numbers, each of which would become a category; note what looks so."""
    by_kind, first, numbers = Counter[str](), dict[str, int](), 0
    found = np.unique(values.numbers, return_index=True, return_counts=True)
    for level, row, count in zip(*(part.tolist() for part in found), strict=True):
        if level < 0 or is_number(values.names[level]):
            numbers += count if level >= 0 else 0
            continue
        by_kind[kind := _stray(values.names[level])] += count
        first[kind] = min(first.get(kind, row), row)
    strays = by_kind.total()
    certain = sum(count for kind, count in by_kind.items() if kind in _CERTAIN)
    for kind, count in by_kind.items():
        told = f"{excerpt(column.name)} = {quoted(values.names[values.numbers[first[kind]]])}"
        if numbers >= strays or (kind in _CERTAIN and numbers + 2 * certain >= strays):
            hint = "or name the column in data.categorical"
            raise FedstageError(f"{column.where(first[kind])}: {told}: {kind}, {hint}")
        if kind in _POSSIBLE and 2 * count >= strays:
            odd[kind].append(told)


def _stray(text: str) -> str:
    """Return what a text may be instead of a number."""
    found = (told for told, form in (_CERTAIN | _POSSIBLE).items() if form.fullmatch(text.strip()))
    return next(found, "a text among numbers; give a number")


#: Different integers of a column that may be codes of categories, and how often each occurs.
_CODES, _OFTEN = range(3, 11), 5
_ROWS = 10  # from this many rows on, different integers are not a coincidence


def tell_integers(columns: Iterable[Column], train: int) -> None:
    """Say which columns of integers may be codes of categories, or identify the `train` rows."""
    for column in columns:
        if isinstance(column.values, Named):
            continue
        values = column.values[:train]
        known = values[np.isfinite(values)]
        if not len(known) or (known != np.rint(known)).any():
            continue
        different, told = np.unique(known), quoted(column.name)
        count, first, last = len(different), int(different[0]), int(different[-1])
        if count in _CODES and len(values) >= _OFTEN * count:
            fault = f"{count} different integers: if they are codes of categories"
            _LOGGER.warning("column %s has %s, name it in data.categorical", told, fault)
        if count == len(values) >= _ROWS:
            fault = f"a different integer in each row, {first} to {last}: if it identifies the rows"
            _LOGGER.warning("column %s has %s, leave it out with data.drop", told, fault)


def numbers_of(column: pa.ChunkedArray) -> Values:
    """Return numbers, NaN where missing."""
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.string())  # which rounds correctly to a number
    values = pc.fill_null(column.cast(pa.float64(), safe=False), math.nan).combine_chunks()
    return np.asarray(np.from_dlpack(values))  # not to_numpy, which imports pandas
