"""Schemes without a distribution: even shares, shards of classes, known clients, and tables."""

import logging

import numpy as np
from numpy.random import Generator

from fedstage.data.datasets.columns import named_column, numbers_of
from fedstage.data.excerpts import alike, listed
from fedstage.data.kinds import kind_of
from fedstage.data.partitions import Indices, Owners
from fedstage.data.table_files import read_table
from fedstage.data.text_files import row_at
from fedstage.errors import FedstageError
from fedstage.settings.partitions import Iid, Natural, PartitionTable, Shards
from fedstage.storage.raw_files import default_folder, find_part

_LOGGER = logging.getLogger(__name__)


def assign(
    settings: Iid | Shards | Natural | PartitionTable,
    labels: Indices, clients: int, generator: Generator, natural: Owners,
) -> list[Indices]:  # fmt: skip
    """Divide the samples by one of the schemes; FedstageError if that is not possible."""
    if isinstance(settings, Shards):
        return in_shards(settings.classes_per_client, labels, clients, generator)
    if isinstance(settings, Natural):
        return of_owners(natural, clients)
    if isinstance(settings, PartitionTable):
        return of_table(settings, len(labels), clients)
    return np.array_split(generator.permutation(len(labels)), clients)  # sizes differ by at most 1


def in_shards(
    per_client: int, labels: Indices, clients: int, generator: Generator
) -> list[Indices]:
    """Deal out shards at random, `per_client` to each client.

    McMahan et al. 2017, section 3. Sizes of shards differ by at most 1. A shard can straddle two
    classes, so a client can have more classes than shards.

    Raises
    ------
    FedstageError
        If a client is to have more classes than there are, or there are more shards than samples.
    """
    shards, classes = clients * per_client, len(np.unique(labels))
    if per_client > classes or shards > len(labels):
        most = f"at most {classes}, the classes, and {len(labels)} samples for {shards} shards"
        raise FedstageError(f"partition.classes_per_client = {per_client}: {most}")
    shuffled = generator.permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    pieces = np.array_split(by_class, shards)
    hands = generator.permutation(len(pieces)).reshape(clients, per_client)
    return [np.concatenate([pieces[piece] for piece in hand]) for hand in hands]


def of_owners(natural: Owners, clients: int) -> list[Indices]:
    """Give each distinct value of the data set's client column, in ascending order, to one client.

    Raises
    ------
    FedstageError
        If there is no client column, or the number of its values is not `clients`.
    """
    if natural is None:
        hint = "name one in data.client_column, or choose another partition"
        raise FedstageError(f"partition = natural: the data set has no client column; {hint}")
    values, owner = np.unique(natural, return_inverse=True)
    if len(values) != clients:
        must = f"must be {len(values)}, the clients in the data set's column (partition = natural)"
        raise FedstageError(f"clients = {clients}: {must}")
    return [np.flatnonzero(owner == client) for client in range(clients)]


def of_table(settings: PartitionTable, count: int, clients: int) -> list[Indices]:
    """Give each client the samples of its rows; samples of no client are told.

    Raises
    ------
    FedstageError
        If the file is missing or damaged, names a sample that is not there, or has another number
        of clients.
    """
    folder = default_folder()
    if folder is None:
        raise FedstageError("partition = table: set data_folder in config.yaml or FEDSTAGE_DATA")
    path = find_part(settings, folder, "table")[0]
    columns = {"partition.index": settings.index, "partition.client": settings.client}
    table = read_table(path, columns, texts=[settings.client])
    owners = named_column("partition.client", settings.client, [(path, table)])
    if len(owners.names) != clients:
        raise FedstageError(f"clients = {clients}: must be {len(owners.names)}, as in {path}")
    column = table.column(settings.index)
    if kind_of(column.type) not in ("integer", "number"):
        fault = f"column is {column.type}; must be integers"
        raise FedstageError(f"{path}: partition.index = {settings.index!r}: {fault}")
    samples = numbers_of(column)
    wrong = ~((samples >= 0) & (samples < count) & (samples == np.rint(samples)))
    if wrong.any():
        row = int(wrong.argmax())
        shown = ": missing" if np.isnan(samples[row]) else f" = {samples[row]:g}"
        fault = f"{settings.index}{shown}; must be a training sample, 0 to {count - 1}"
        raise FedstageError(f"{row_at([(path, table)], row)}: {fault}")
    for line in alike("clients", owners.names):
        _LOGGER.warning("%s: %s", path, line)
    if len(lacking := np.setdiff1d(np.arange(count), samples)):
        told = f"{len(lacking)} of {count} training samples have no client"
        _LOGGER.warning("%s: %s: %s", path, told, listed([*map(str, lacking)]))
    return [samples[owners.numbers == client].astype(np.int64) for client in range(clients)]
