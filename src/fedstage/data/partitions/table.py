"""Table: a partition of others, which names the client of each sample."""

import logging
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.random import Generator

from fedstage.data.datasets.columns import kind_of, named_column
from fedstage.data.datasets.features import numbers_of
from fedstage.data.excerpts import listed
from fedstage.data.folder import default_folder
from fedstage.data.partitions import Indices, Owners
from fedstage.data.table_files import read_table, row_at
from fedstage.errors import FedstageError
from fedstage.settings.partitions import PartitionTable
from fedstage.storage.raw_files import find_part

_LOGGER = logging.getLogger(__name__)


def assign(
    settings: PartitionTable, labels: Indices, clients: int, generator: Generator, natural: Owners
) -> list[Indices]:
    """Give each client the samples of its rows; samples of no client are told.

    Raises
    ------
    FedstageError
        If the file is missing or damaged, names a sample twice or one that is not there, or has
        another number of clients.
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
    samples = _positions(path, settings.index, table.column(settings.index), len(labels))
    if lacking := sorted(set(range(len(labels))) - set(samples.tolist())):
        told = f"{len(lacking)} of {len(labels)} training samples have no client"
        _LOGGER.warning("%s: %s: %s", path, told, listed([str(sample) for sample in lacking]))
    return [samples[owners.numbers == client] for client in range(clients)]


def _positions(path: Path, name: str, column: pa.ChunkedArray, count: int) -> Indices:
    """Return a column of positions below `count`, each of which is there once."""
    if kind_of(column.type) not in ("integer", "number"):
        fault = f"column is {column.type}; must be integers"
        raise FedstageError(f"{path}: partition.index = {name!r}: {fault}")
    values = numbers_of(column)
    _, first, again = np.unique(values, return_index=True, return_inverse=True)
    for wrong, fault in (
        (~((values >= 0) & (values < count) & (values == np.rint(values))),
         f"must be a training sample, 0 to {count - 1}"),
        (first[again] != np.arange(len(values)), "this sample has a client already"),
    ):  # fmt: skip
        if wrong.any():
            row = int(wrong.argmax())
            raise FedstageError(f"{row_at(path, row)}: {name} = {values[row]:g}: {fault}")
    return values.astype(np.int64)
