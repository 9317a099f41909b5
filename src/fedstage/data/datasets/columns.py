"""Columns of tables: labels, clients and groups by name, texts, and features."""

import logging
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fedstage.data.datasets.splits import Labelled, Named
from fedstage.data.excerpts import alike, excerpt, have, listed, normal, plain, quoted
from fedstage.data.kinds import (
    kind_of,
    must_be_names,
    name_column,
    refuse_line_breaks,
    required,
    with_names,
)
from fedstage.data.layouts import split_word
from fedstage.data.text_files import NUMBER, File, Files, is_text, row_at
from fedstage.errors import FedstageError, each
from fedstage.settings.data import OfHub, OwnTables, ParquetData

_LOGGER = logging.getLogger(__name__)

_NUMBER = re.compile(rf"(?![-+]?0\d){NUMBER}|[-+]?(inf|nan)(inity)?", re.IGNORECASE)
_LONGEST = 100  # letters of a number, date or range
_MOST_SPLITS = 10  # values of a column
OF_SPLITS = re.compile(r"(is_?|in_?)?(split|subset|train|test|validation|holdout)(_?set)?")
_EXACT = 2.0**53  # from which not all integers are numbers of float64
_WHOLE, _DIGITS = re.compile(r"-?(0|[1-9][0-9]{0,17})"), re.compile(r"[-+]?[0-9]+")


def coded(what: str, columns: Sequence[pa.ChunkedArray], *, numeric: bool = False) -> Named:
    """Return values of all files as positions among their sorted names, -1 where empty.

    Names have Unicode's normal form; `what` has names in other forms, too, is told. Integers are
    sorted as numbers.
    """
    chunks = [part for column in columns for part in column.cast(pa.large_string()).chunks]
    found = pa.chunked_array(chunks, pa.large_string()).dictionary_encode().combine_chunks()
    written = [normal(text) if plain(text) else None for text in found.dictionary.to_pylist()]
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
    columns = each(lambda file: name_column(key, name, file), files)
    numeric = all(each(lambda file: _is_whole(key, name, *file), zip(files, columns, strict=True)))
    return coded(f"{key} = {name!r}", columns, numeric=numeric)


def _is_whole(key: str, name: str, file: File, column: pa.ChunkedArray) -> bool:
    """Whether names are integers; FedstageError if they are other numbers."""
    path = file[0]
    refuse_line_breaks(name, file)
    if not is_text(path):
        return kind_of(column.type) == "integer"
    texts = column.unique().to_pylist()
    _refuse_decimals(f"{path}: {key} = {name!r}", texts, must_be_names(key))
    return all(map(_WHOLE.fullmatch, texts))


def _refuse_decimals(where: str, texts: Iterable[str], must: str) -> None:
    """Refuse names that are numbers, not all whole: the same one could be written in two ways."""
    known = [text.strip() for text in texts]
    if any(not _DIGITS.fullmatch(text) for text in known) and all(map(_NUMBER.fullmatch, known)):
        raise FedstageError(f"{where}: column is double; {must}")


def text_column(key: str, name: str, files: Files) -> list[str]:
    """Return the texts in the column of a setting.

    Raises
    ------
    FedstageError
        If a file has no such column, or one of another type, or a text is missing.
    """
    columns = each(lambda file: required(key, name, file, ("text",), "must be text"), files)
    return [text for column in columns for text in column.cast(pa.large_string()).to_pylist()]


def labelled_rows(settings: OwnTables | ParquetData | OfHub, train: int, files: Files) -> Labelled:
    """Return the names of each row, with the rows that are drawn for testing last.

    The first `train` of the files are for training. If no test file has a column of clients or
    groups, only training rows have known ones.
    """
    held = [(dict.fromkeys(table.column_names), table) for _, table in files]
    tested = {name for own, _ in held[train:] for name in own}

    def of(key: str) -> Named | None:
        column = getattr(settings, key)
        # A division takes clients from all rows.
        owned = files if column in tested or settings.division is not None else files[:train]
        return named_column(f"data.{key}", column, owned) if column is not None else None

    labels, clients, groups = each(of, ["label", "client_column", "group_column"])
    assert labels is not None, "there is a column of labels"
    known = (settings.label, settings.client_column, settings.group_column)
    others = dict.fromkeys(name for own, _ in held for name in own)
    left_out = {*known, *getattr(settings, "drop", ())}
    for name in (one for one in others if one not in left_out):
        _tell_splits(name, [table[name] for own, table in held if name in own])
    trained = sum(table.num_rows for _, table in files[:train])
    order = np.arange(len(labels.numbers))
    return Labelled(labels, clients, groups, trained, order).drawn(settings)


def _tell_splits(name: str, columns: Sequence[pa.ChunkedArray]) -> None:
    """Say that a column has names of splits, or is named so: its rows might be for testing."""
    found = [column.unique() for column in columns if kind_of(column.type) == "text"]
    values = [str(value) for own in found if len(own) <= _MOST_SPLITS for value in own.to_pylist()]
    splits = {split_word(value) for value in values}
    if ("train" in splits and len(splits - {None}) > 1) or OF_SPLITS.fullmatch(name.lower()):
        told = listed(list(map(quoted, dict.fromkeys(values)))) or "other values"
        _LOGGER.warning("column %s has %s: if these are splits, put the rows into a file for each, "
                        "and leave it out", quoted(name), told)  # fmt: skip


# --- features -------------------------------------------------------------------------------------

Values: TypeAlias = NDArray[np.float64]


class Column(NamedTuple):
    """A feature of the rows of all files: numbers, NaN where missing, or categories."""

    name: str
    values: Values | Named
    files: Files

    @property
    def missing(self) -> NDArray[np.bool_]:
        """A mask, bool [n], of the rows without a value."""
        own = self.values
        return own.numbers < 0 if isinstance(own, Named) else np.isnan(own)

    def refuse(self, wrong: NDArray[np.bool_], fault: str) -> None:
        """Raise FedstageError with the first row of a mask, bool [n], if there is one."""
        if wrong.any():
            where = row_at(self.files, int(wrong.argmax()))
            raise FedstageError(f"{where}: {excerpt(self.name)}{fault}")


_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
#: What a text certainly is instead of a number, or a date.
_CERTAIN = {
    "a comma in a number; write it with a decimal point only":
        re.compile(r"[-+]?\d[\d.]*,[\d.,]*\d"),
    "a minus or digit that is not ASCII; write numbers with - and 0 to 9":
        re.compile(r"(?=.*[^\x00-\x7f])[-+\u2010-\u2015\u2212\ufe63\uff0d]?\s*\d+[.,]?\d*"),
    "spaces in a number; leave them out": re.compile(r"[-+]?\d+(\s\d{3})+([.,]\d+)?"),
    "a date; make it numbers, or leave it out with data.drop":
        re.compile(r"(\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.]\d{4})([T ].*)?"
                   rf"|\d\d?\.?[- ]{_MONTH}[-, ]+\d\d(\d\d)?|{_MONTH} \d\d?,? \d{{4}}"
                   r"|\d\d?\.? [^\W\d]{3,10}\.? \d{4}", re.I),
}  # fmt: skip
_NUMBERS = "numbers written as texts"
#: What it may be, although it is a category.
_POSSIBLE = {
    "numbers with leading zeros": re.compile(r"[-+]?0\d+(\.\d*)?"),
    "two numbers": re.compile(rf"{NUMBER}\s*[/:\u2013-]\s*{NUMBER}(\s*[^\W\d]+)?"),
    "numbers with a unit or sign":
        re.compile(rf"(?:[A-Za-z]{{0,3}}[^\w\s-]{{0,2}})\s*(?:{NUMBER}|\d[\d.,]*)\s*(?!\d)[^\W\d_]*[^\w\s]?[^\s,]{{0,8}}"
                   r"(?: [^\s,]{1,8}){0,3}"),
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
    columns = each(partial(with_names, name), files)

    def kind(part: tuple[File, pa.ChunkedArray]) -> str:
        file, column = part
        path = file[0]
        where, found = f"{path}: column {quoted(name)}", kind_of(column.type)
        categories = name in categorical
        if found is None or (categories and found == "number"):
            must = "integers, texts or booleans" if categories else "numbers, texts or booleans"
            told = f"is {column.type}: must be {must}; leave it out with data.drop"
            raise FedstageError(f"{where} {told}")
        refuse_line_breaks(name, file)
        if categories and is_text(path):
            texts = column.drop_null().unique().to_pylist()
            _refuse_decimals(where, texts, "categories must be texts or integers")
        return "number" if found == "integer" and name not in categorical else found

    found = each(kind, zip(files, columns, strict=True))
    kinds = dict(zip(found, (path for path, _ in files), strict=True))
    kinds.pop("empty", None)
    if name not in categorical and not kinds.keys() & {"text", "boolean"}:
        numbers = np.concatenate([numbers_of(values) for values in columns])
        large = np.abs(numbers) >= _EXACT
        if large.any() and any(is_text(path) or kind_of(table[name].type) == "integer"
                               for path, table in files):  # fmt: skip
            row = int(large.argmax())
            _LOGGER.warning("column %s: numbers beyond 2**53 keep 16 digits: %.0f in %s",
                            quoted(name), numbers[row], row_at(files, row))  # fmt: skip
        return Column(name, numbers, files)
    values = coded(f"column {quoted(name)}", columns)
    column = Column(name, values, files)
    if name not in categorical:
        _check_strays(column, values, odd)
    if len(kinds) > 1:
        told = " and ".join(f"{kind} in {path}" for kind, path in kinds.items())
        raise FedstageError(f"column {quoted(name)}: {told}; must be of one type")
    for line in alike(f"categories of {quoted(name)}", values.names):
        _LOGGER.warning("%s", line)
    return column


def _check_strays(column: Column, values: Named, odd: dict[str, list[str]]) -> None:
    """Refuse texts among numbers, each of which would become a category; note what looks so."""
    counts = np.bincount(values.numbers[values.numbers >= 0], minlength=len(values.names))
    by_kind: dict[str, list[int]] = defaultdict(list)
    for level, text in enumerate(values.names):
        by_kind[_kind_of_text(text)].append(level)
    times = {kind: int(counts[levels].sum()) for kind, levels in by_kind.items()}
    numbers = times.pop(_NUMBERS, 0)
    strays, certain = sum(times.values()), sum(times.get(kind, 0) for kind in _CERTAIN)
    # Of a number that is given for few rows, most rows may have the same mark instead.
    several = len(by_kind[_NUMBERS]) > 1 and 2 * len(by_kind[_NUMBERS]) > len(values.names)
    for kind, levels in by_kind.items():
        own = np.isin(values.numbers, levels)
        value = quoted(values.names[values.numbers[own.argmax()]])
        likely = several or numbers + 2 * certain * (kind in _CERTAIN) >= strays
        if kind != _NUMBERS and likely:
            column.refuse(own, f" = {value}: {kind}, or name the column in data.categorical")
        if not strays or (kind in _POSSIBLE and 2 * times[kind] >= strays):
            odd[kind].append(f"{excerpt(column.name)} = {value}")


def _kind_of_text(text: str) -> str:
    """Return what a text may be; a long one is a text."""
    kinds = {_NUMBERS: _NUMBER} | _CERTAIN | _POSSIBLE
    short = text.strip() if len(text) <= _LONGEST else ""
    found = (kind for kind, form in kinds.items() if form.fullmatch(short))
    return next(found, "a text among numbers; give a number")


def numbers_of(column: pa.ChunkedArray) -> Values:
    """Return numbers, NaN where missing."""
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.string())  # which rounds correctly to a number
    values = pc.fill_null(column.cast(pa.float64(), safe=False), math.nan).combine_chunks()
    return np.asarray(np.from_dlpack(values))  # not to_numpy, which imports pandas
