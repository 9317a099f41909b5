"""Tables of features, CSV or Parquet: one row per sample, with a label and, if known, a client."""

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from fedstage.data.datasets.columns import Column, feature_columns, labelled_rows
from fedstage.data.datasets.images import Dataset
from fedstage.data.datasets.splits import Named, Rows
from fedstage.data.excerpts import excerpt, listed, quoted
from fedstage.data.layouts import find_files
from fedstage.data.table_files import read_files, require
from fedstage.data.text_files import Files
from fedstage.errors import FedstageError, both, each
from fedstage.settings.data import TableData

_LOGGER = logging.getLogger(__name__)


def load(settings: TableData, folder: Path) -> Dataset:
    """Read the tables below the data folder as features float32 [n, F].

    Clients occur in training rows. They are numbered in the order of their names, as classes are.

    Raises
    ------
    FedstageError
        If a file is missing, damaged, or has different columns than the others; if a column or a
        value is invalid; if there is one class only; or if there are fewer rows than a size.
    """
    found = find_files(settings, folder)
    found.tell(folder / settings.folder)
    names = (settings.label, settings.client_column, settings.group_column)
    texts = {*filter(None, names), *settings.categorical}
    every = read_files([*found.train, *found.test], texts)
    rows, columns = both(
        lambda: labelled_rows(settings, len(found.train), every),
        lambda: feature_columns(_feature_names(settings, every), every, settings.categorical),
    )
    split = rows.split(settings)
    where = folder / settings.folder
    encoded, shown, constant = encode(where, columns, rows.order[split.train], settings.missing)
    values = torch.from_numpy(encoded)
    dataset = rows.dataset(split, lambda own: values[rows.order[own]])
    return replace(dataset, feature_names=shown, constant=constant)


def _feature_names(settings: TableData, files: Files) -> list[str]:
    """Return the columns of features, which all files have, in the order of the first file."""
    (first, table), *others = files
    every = dict.fromkeys(name for _, table in files for name in table.column_names)
    for key in ("features", "drop", "categorical"):
        for column in getattr(settings, key):
            require(first, f"data.{key}", column, every)
            if (times := getattr(settings, key).count(column)) > 1:
                raise FedstageError(f"data.{key}: {quoted(column)} is there {times} times")
    no_features = {settings.label, settings.client_column, settings.group_column, *settings.drop}
    names = list(settings.features) or [n for n in table.column_names if n not in no_features]

    def compare(file: tuple[Path, pa.Table]) -> None:
        path, own = file[0], {*file[1].column_names}
        more = set() if settings.features else own - {*names, *no_features}
        if differing := sorted({*names} - own | more):
            told = listed([quoted(name) for name in differing])
            raise FedstageError(f"{path}: column {told}: not in both it and {first}")

    each(compare, others)
    if not names:
        raise FedstageError(f"{first}: has no column of features in addition to {settings.label!r}")
    return names


# --- features as numbers --------------------------------------------------------------------------

#: A column of texts with more categories is an identifier, or has a text among numbers.
MOST_CATEGORIES = 100
#: The name of the category of missing values.
MISSING = "missing"


def encode(
    where: Path, columns: Sequence[Column], train: Rows, missing: str
) -> tuple[NDArray[np.float32], tuple[str, ...], tuple[str, ...]]:
    """Return the features of all rows, standardised and one-hot coded by the rows `train`.

    They are float32 [n, F], and come with their names and the names of columns left out.
    Numbers become (x - mean) / deviation, with the population's deviation (n). A category is 1
    where the row has it, else 0; for a value that no training row has, all categories are 0. A
    column whose value is the same in all training rows is left out. With `missing` = ``mean``,
    missing numbers become the mean of the others, and missing texts become a category.

    Raises
    ------
    FedstageError
        If a value is missing or not finite, if a column of texts has too many categories, or if all
        columns are constant.
    """
    lacking = np.logical_or.reduce([column.missing for column in columns])
    for column in columns if missing == "refuse" else ():
        count = f"{lacking.sum()} of {len(lacking)} rows lack values"
        column.refuse(column.missing, f": missing; {count}; give them, or set data.missing = mean")
    filled = [(column.name, int(column.missing.sum())) for column in columns]
    if told := [f"{excerpt(name)} ({count} rows)" for name, count in filled if count]:
        _LOGGER.warning("missing values that are filled: %s", listed(told))
    found = [_coded(column, train) for column in columns]
    constant = [column.name for column, own in zip(columns, found, strict=True) if own is None]
    kept = [own for own in found if own is not None]
    if not kept:
        raise FedstageError(f"{where}: all features are constant in the training rows")
    names = [name for _, own in kept for name in own]
    return np.concatenate([own for own, _ in kept], axis=1), tuple(names), tuple(constant)


Coded: TypeAlias = tuple[NDArray[np.float32], list[str]] | None


def _coded(column: Column, train: Rows) -> Coded:
    if isinstance(column.values, Named):
        return _one_hot(column.name, *column.values, train)
    values, missing = column.values, column.missing
    column.refuse(np.isinf(values), ": infinite; must be finite")
    column.refuse(np.abs(values) > _LARGEST, f": must be between {-_LARGEST:g} and {_LARGEST:g}")
    known = values[train][~missing[train]]
    if not len(known) or known.min() == known.max():
        return None
    # fsum is exact, and so are Python's powers: the same bytes on every machine.
    mean = math.fsum(known.tolist()) / len(known)
    squares = [difference**2 for difference in (known - mean).tolist()]
    deviation = math.sqrt(math.fsum(squares) / len(known))
    scaled = (np.where(missing, mean, values) - mean) / deviation
    return scaled.astype(np.float32)[:, None], [column.name]


def _one_hot(column: str, numbers: Rows, names: tuple[str, ...], train: Rows) -> Coded:
    levels = np.unique(numbers[train])
    shown = [MISSING if level < 0 else names[level] for level in levels.tolist()]
    if len(levels) > MOST_CATEGORIES:
        hint = f"make it numbers, drop it, or use data = texts with text = {column!r}"
        fault = f"{len(levels)} categories in the training rows, at most {MOST_CATEGORIES}; {hint}"
        raise FedstageError(f"column {quoted(column)}: such as {quoted(shown[-1])}: {fault}")
    if len(levels) == 1:
        return None
    unseen = np.unique(numbers[~np.isin(numbers, levels)])
    if len(unseen):
        told = listed([quoted(names[level]) if level >= 0 else MISSING for level in unseen])
        count = int(np.isin(numbers, unseen).sum())
        _LOGGER.warning("column %s: %d rows have no category, as no training row has: %s",
                        quoted(column), count, told)  # fmt: skip
    if levels[0] < 0:  # the category of missing values is the last one
        levels, shown = np.roll(levels, -1), [*shown[1:], shown[0]]
    coded = (numbers[:, None] == levels).astype(np.float32)
    return coded, [f"{column}={level}" for level in shown]


#: Beyond this, squares and standardised values overflow double and single precision.
_LARGEST = 1e30
