"""Partitions: which training samples belong to which client.

Each scheme is a module with a function ``assign(settings, labels, clients, generator, natural)``,
which returns the sample indices of every client, disjoint and together all samples.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fedstage.errors import FedstageError
from fedstage.settings.base import implementation
from fedstage.settings.partitions import Partition

Indices = npt.NDArray[np.int64]
Assign = Callable[[Partition, Indices, int, np.random.Generator, Indices | None], list[Indices]]

#: One row per training sample: its index in the training set, its client and its role.
CLIENTS_SCHEMA = pa.schema([("client", pa.int32()), ("sample", pa.int64()), ("role", pa.string())])

#: One row per client, role and label that occur, with the number of samples.
HISTOGRAM_SCHEMA = pa.schema(
    {"client": pa.int32(), "role": pa.string(), "label": pa.int32(), "samples": pa.int64()}
)


def divide(
    settings: Partition,
    labels: Indices,
    clients: int,
    generator: np.random.Generator,
    natural: Indices | None = None,
) -> list[Indices]:
    """Return the sample indices of each client, by the scheme of `settings`; none is empty.

    `labels` [n] are the classes of the training samples; `natural` [n] is the data set's client
    column, for the scheme `natural`.

    Raises
    ------
    FedstageError
        If there are more clients than samples, a client gets none, or the scheme's settings cannot
        be met.
    """
    if not 1 <= clients <= len(labels):
        raise FedstageError(f"clients = {clients}: from 1 to the {len(labels)} training samples")
    assign: Assign = implementation(settings).assign
    assigned = assign(settings, labels, clients, generator, natural)
    empty = [client for client, samples in enumerate(assigned) if not len(samples)]
    if empty:
        raise FedstageError(
            f"partition = {settings.name}: client {empty[0]} of {clients} has no samples, "
            "every client needs at least 1; use fewer clients"
        )
    return assigned
