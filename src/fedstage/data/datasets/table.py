"""Tables of features, CSV or Parquet: one row per sample, with a label and, if known, a client."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch

from fedstage.data.datasets.columns import (
    Column,
    Named,
    encode,
    feature_column,
    named_column,
)
from fedstage.data.datasets.images import Dataset, Images
from fedstage.data.datasets.splits import Rows, choose_rows, permutation
from fedstage.data.table_files import read_table, require, train_and_test
from fedstage.errors import FedstageError
from fedstage.settings.data import TableData


@dataclass(frozen=True)
class _Rows:
    """All rows, those for training first: labels, clients, and the columns of features."""

    labels: Named
    clients: Named | None  #: of the rows for training
    features: list[Column]
    train: int  #: rows for training; the others are for testing


def load(settings: TableData, folder: Path) -> Dataset:
    """Read the tables below the data folder as features float32 [n, F].

    Clients occur in training rows. They are numbered in the order of their names, as classes are.

    Raises
    ------
    FedstageError
        If a file is missing, damaged, or has other columns than the others; if a column or a value
        is invalid; if there is one class only; or if there are fewer rows than a size.
    """
    rows = _read(settings, folder)
    split = choose_rows(settings, rows.train, len(rows.labels.numbers) - rows.train)
    where = folder / settings.folder
    if len(np.unique(rows.labels.numbers[split.train])) == 1:
        name = rows.labels.names[rows.labels.numbers[split.train[0]]]
        raise FedstageError(f"{where}: {settings.label} = {name!r} in all training rows: one class")
    encoded = encode(where, rows.features, split.train, settings.missing)
    features = torch.from_numpy(encoded.values)
    labels = torch.from_numpy(rows.labels.numbers)
    clients = None if rows.clients is None else rows.clients.of(split.train)

    def part(own: Rows) -> Images:
        return Images(features[own], labels[own])

    train = part(split.train)
    return Dataset(
        train=train if clients is None else _owned(train, clients),
        test=part(split.test),
        held_out=features[split.held_out],
        server_validation=part(split.server_validation),
        class_names=rows.labels.names,
        client_names=None if clients is None else clients.names,
        feature_names=encoded.names,
        constant=encoded.constant,
    )


def _owned(samples: Images, clients: Named) -> Images:
    return Images(samples.images, samples.labels, torch.from_numpy(clients.numbers))


def _read(settings: TableData, folder: Path) -> _Rows:
    paths, test_paths = train_and_test(settings, folder)
    train = [(path, read_table(path)) for path in paths]
    every = train + [(path, read_table(path)) for path in test_paths]
    # A division takes clients from all rows.
    owned = train if settings.division is None else every
    labels = named_column("data.label", settings.label, every)
    clients = None
    if settings.client_column is not None:
        clients = named_column("data.client_column", settings.client_column, owned)
    names = _feature_names(settings, every)
    features = [feature_column(name, every, name in settings.categorical) for name in names]
    rows = _Rows(labels, clients, features, sum(table.num_rows for _, table in train))
    if settings.test_fraction is None:
        return rows
    return _divided(settings, settings.test_fraction, rows)


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
                raise FedstageError(f"{path}: has no column {name!r}, which {first} has")
        more = [n for n in other.column_names if n not in {*names, *no_features}]
        if more and not settings.features:
            raise FedstageError(
                f"{path}: column {more[0]!r}: {first} has none; put it in data.drop"
            )
    if not names:
        raise FedstageError(f"{first}: has no column of features in addition to {settings.label!r}")
    return names


# --- rows for testing -----------------------------------------------------------------------------


def _divided(settings: TableData, fraction: float, rows: _Rows) -> _Rows:
    """Put the rows that are drawn for testing last."""
    labels, clients = rows.labels.numbers, rows.clients
    owners = np.zeros_like(labels) if clients is None else clients.numbers
    shuffled = permutation(settings.split_seed, "table", len(labels))
    tested = rows_for_testing(fraction, shuffled, labels, owners)
    train, test = np.flatnonzero(~tested), np.flatnonzero(tested)
    if not len(test):
        raise FedstageError(
            f"data.test_fraction = {fraction:g}: none of {len(labels)} rows is for testing"
        )
    order = np.concatenate([train, test])
    return _Rows(
        rows.labels.of(order, every=True),
        None if clients is None else clients.of(order, every=True),
        [column.taken(order) for column in rows.features],
        len(train),
    )


def rows_for_testing(fraction: float, shuffled: Rows, labels: Rows, clients: Rows) -> np.ndarray:
    """Return which rows are for testing, bool [n], a share of each class of each client.

    The rows are put in the order of clients, then classes, then `shuffled`, and evenly spaced ones
    of them are taken: so the number of a client's and of a class's is within 1 of its share. A
    client of whom all rows would be taken keeps one.
    """
    ranks = np.empty_like(shuffled)
    ranks[shuffled] = np.arange(len(shuffled))
    order = np.lexsort((ranks, labels, clients))
    ends = np.floor(np.arange(len(order) + 1) * fraction + 1e-9)  # 0.29 * 100 is below 29
    tested = np.zeros(len(order), bool)
    tested[order] = ends[1:] > ends[:-1]
    for client in np.unique(clients):
        own = np.flatnonzero(clients == client)
        if tested[own].all():
            tested[own[0]] = False
    return tested
