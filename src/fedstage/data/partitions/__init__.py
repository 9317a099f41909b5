"""Partitions: which training samples belong to which client.

A scheme is a module of the name of its settings, with a function ``assign(settings, labels,
clients, generator, natural)`` that returns the sample indices of every client, disjoint and
together all samples.
"""

from collections.abc import Callable
from importlib import import_module

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fedstage.errors import FedstageError
from fedstage.settings.partitions import Partition

Indices = npt.NDArray[np.int64]
Assign = Callable[
    [Partition, Indices, int, np.random.Generator, Indices | None],
    list[Indices],
]

#: One row a training sample: its index in the training set, whose it is, and for what.
CLIENTS_SCHEMA = pa.schema([("client", pa.int32()), ("sample", pa.int64()), ("role", pa.string())])

#: One row a client, role and label that occur: how many samples.
HISTOGRAM_SCHEMA = pa.schema(
    [
        ("client", pa.int32()),
        ("role", pa.string()),
        ("label", pa.int32()),
        ("samples", pa.int64()),
    ]
)


def divide(
    settings: Partition,
    labels: Indices,
    clients: int,
    generator: np.random.Generator,
    natural: Indices | None = None,
) -> list[Indices]:
    """Divide the training samples over the clients by the scheme that `settings` names.

    Parameters
    ----------
    settings : Partition
        The scheme's name and settings.
    labels : array of shape [n]
        Class of each training sample.
    clients : int
        Number of clients.
    generator : numpy Generator
        The only source of randomness.
    natural : array of shape [n], optional
        The data set's client column, for the scheme `natural`.

    Returns
    -------
    list of arrays
        Sample indices of each client, none empty.

    Raises
    ------
    FedstageError
        If there are more clients than samples, a client gets none, or the scheme's settings cannot
        be met.
    """
    if not 1 <= clients <= len(labels):
        raise FedstageError(f"clients = {clients}: from 1 to the {len(labels)} training samples")
    assign: Assign = import_module(f"fedstage.data.partitions.{settings.name}").assign
    assigned = assign(settings, labels, clients, generator, natural)
    empty = [client for client, samples in enumerate(assigned) if not len(samples)]
    if empty:
        raise FedstageError(
            f"partition = {settings.name}: client {empty[0]} of {clients} has no samples, "
            "every client needs at least 1; use fewer clients"
        )
    return assigned
