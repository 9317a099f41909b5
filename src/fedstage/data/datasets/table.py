"""Tables of features, CSV or Parquet: one row per sample, with a label and, if known, a client."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch

from fedstage.data.datasets.columns import feature_column, labelled_rows
from fedstage.data.datasets.encoding import encode
from fedstage.data.datasets.images import Dataset
from fedstage.data.excerpts import quoted
from fedstage.data.table_files import read_files, require
from fedstage.errors import FedstageError
from fedstage.settings.data import TableData


def load(settings: TableData, folder: Path) -> Dataset:
    """Read the tables below the data folder as features float32 [n, F].

    Clients occur in training rows. They are numbered in the order of their names, as classes are.

    Raises
    ------
    FedstageError
        If a file is missing, damaged, or has different columns than the others; if a column or a
        value is invalid; if there is one class only; or if there are fewer rows than a size.
    """
    train, every = read_files(settings, folder)
    rows = labelled_rows(settings, train, every)
    names = _feature_names(settings, every)
    features = [
        feature_column(name, every, name in settings.categorical).taken(rows.order)
        for name in names
    ]
    split = rows.split(settings)
    where = folder / settings.folder
    if len(np.unique(rows.labels.numbers[split.train])) == 1:
        name = rows.labels.names[rows.labels.numbers[split.train[0]]]
        raise FedstageError(
            f"{where}: {settings.label} = {quoted(name)} in all training rows; at least two "
            "classes are needed"
        )
    encoded = encode(where, features, split.train, settings.missing)
    values = torch.from_numpy(encoded.values)
    return replace(
        rows.dataset(split, lambda own: values[own]),
        feature_names=encoded.names,
        constant=encoded.constant,
    )


def _feature_names(settings: TableData, files: Sequence[tuple[Path, pa.Table]]) -> list[str]:
    """Return the columns of features, which all files have, in the order of the first file."""
    (first, table), *others = files
    every = dict.fromkeys(name for _, table in files for name in table.column_names)
    for key in ("features", "drop", "categorical"):
        for column in getattr(settings, key):
            require(first, f"data.{key}", column, every)
    no_features = {settings.label, settings.client_column, *settings.drop}
    names = list(settings.features) or [n for n in table.column_names if n not in no_features]
    for path, other in others:
        for name in names:
            if name not in other.column_names:
                raise FedstageError(f"{path}: has no column {quoted(name)}, which {first} has")
        more = [n for n in other.column_names if n not in {*names, *no_features}]
        if more and not settings.features:
            raise FedstageError(
                f"{path}: column {quoted(more[0])}: {first} has none; put it in data.drop"
            )
    if not names:
        raise FedstageError(f"{first}: has no column of features in addition to {settings.label!r}")
    return names
