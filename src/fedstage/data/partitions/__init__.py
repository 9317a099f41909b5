"""Partitions: which training samples belong to which client.

Each scheme's module has a function ``assign(settings, labels, clients, generator, natural)``, which
returns the sample indices of every client. It is checked that no client is empty and no two clients
share a sample.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numpy.random import Generator

from fedstage.errors import FedstageError
from fedstage.settings.base import implementation
from fedstage.settings.partitions import Partition

Indices = npt.NDArray[np.int64]
Owners = Indices | None  #: the data set's own client of each sample, if known
Assign = Callable[[Partition, Indices, int, Generator, Owners], list[Indices]]

#: One row per training sample: its index in the training set, its client and its role.
CLIENTS_SCHEMA = pa.schema([("client", pa.int32()), ("sample", pa.int64()), ("role", pa.string())])

#: One row per client, role and label that occur, with the number of samples.
HISTOGRAM_SCHEMA = pa.schema(
    {"client": pa.int32(), "role": pa.string(), "label": pa.int32(), "samples": pa.int64()}
)


def divide(
    settings: Partition, labels: Indices, clients: int, generator: Generator, natural: Owners = None
) -> list[Indices]:
    """Return the sample indices of each client, by the scheme of `settings`; none is empty.

    `labels` [n] are the classes of the training samples; `natural` [n] is the data set's client
    column, for the scheme `natural`.

    Raises
    ------
    FedstageError
        If there are more clients than samples, a client gets none, a sample has two clients, or the
        scheme's settings cannot be met.
    """
    if not 1 <= clients <= len(labels):
        raise FedstageError(f"clients = {clients}: from 1 to the {len(labels)} training samples")
    assign: Assign = implementation(settings).assign
    shares = assign(settings, labels, clients, generator, natural)
    assigned = [np.asarray(share) for share in shares]
    for fault in _faults(assigned, len(labels), clients):
        raise FedstageError(f"partition = {settings.name}: {fault}")
    return assigned


def _faults(assigned: Sequence[Indices], samples: int, clients: int) -> Iterator[str]:
    """Yield why `assigned` is not a partition: it may leave out samples, but not share any."""
    if len(assigned) != clients:
        yield f"{len(assigned)} shares, not one for each of {clients} clients"
    for client, share in enumerate(assigned):
        if not share.size:
            yield f"client {client} of {clients} has no samples, and needs at least 1; use fewer"
        elif share.dtype.kind not in "iu" or share.ndim != 1:
            yield f"the share of client {client}: must be indices of samples, not {share.dtype}"
        elif share.min() < 0 or share.max() >= samples:
            yield f"the share of client {client}: indices must be from 0 to {samples - 1}"
    owned, counts = np.unique(np.concatenate(assigned), return_counts=True)
    if counts.max() > 1:
        twice = owned[counts.argmax()]
        owners = [client for client, share in enumerate(assigned) if twice in share]
        yield f"sample {twice} is {counts.max()} times in the shares of clients {owners}, not once"
