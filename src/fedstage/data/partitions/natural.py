"""Natural: one client for each value of the data set's client column."""

import numpy as np
from numpy.random import Generator

from fedstage.data.partitions import Indices, Owners
from fedstage.errors import FedstageError
from fedstage.settings.partitions import Natural


def assign(
    settings: Natural, labels: Indices, clients: int, generator: Generator, natural: Owners
) -> list[Indices]:
    """Give each distinct value of the client column, in ascending order, to one client.

    Raises
    ------
    FedstageError
        If there is no client column, or the number of its values is not `clients`.
    """
    if natural is None:
        raise FedstageError(
            "partition = natural: the data set has no client column; "
            "name one in data.client_column (parquet, table), or choose another partition"
        )
    values, owner = np.unique(natural, return_inverse=True)
    if len(values) != clients:
        must = f"must be {len(values)}, the clients in the data set's column (partition = natural)"
        raise FedstageError(f"clients = {clients}: {must}")
    return [np.flatnonzero(owner == client) for client in range(clients)]
