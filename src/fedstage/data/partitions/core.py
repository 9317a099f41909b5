"""The core: the server's own labelled training samples, which no client has."""

import numpy as np

from fedstage.data.partitions import Indices, divide
from fedstage.data.partitions.dirichlet import apportion, deal, split_by_class
from fedstage.data.partitions.roles import Columns
from fedstage.errors import FedstageError
from fedstage.randomness import numpy_generator
from fedstage.settings.partitions import PartitionSettings


def divide_with_core(
    settings: PartitionSettings, labels: Indices, natural: Indices | None
) -> tuple[list[Indices], Indices | None]:
    """Return the sample indices of each client, and the server's, if it has a core.

    `labels` [n] and `natural` [n] are as in `fedstage.data.partitions.divide`, as are the errors;
    and there must be more samples than clients for a stratified core.
    """
    generator = numpy_generator(settings.seed, "partition", "clients")
    scheme, clients = settings.partition, settings.clients
    if settings.core is None:
        return divide(scheme, labels, clients, generator, natural), None
    if settings.core.samples == "stratified":
        if len(labels) <= clients:
            raise FedstageError(
                f"clients = {clients}: with a core, at most {len(labels) - 1}, one less than there "
                "are training samples"
            )
        own = stratified(labels, len(labels) // (clients + 1), settings.seed)
        left = np.delete(np.arange(len(labels)), own)
        origins = None if natural is None else natural[left]
        shares = divide(scheme, labels[left], clients, generator, origins)
        return [left[share] for share in shares], own
    *shares, own = divide(scheme, labels, clients + 1, generator, natural)
    return shares, own


def stratified(labels: Indices, size: int, seed: int) -> Indices:
    """Draw `size` samples, each class in proportion to its samples, rounded."""
    classes = split_by_class(labels, np.arange(len(labels)))
    sizes = np.array([len(samples) for samples in classes], dtype=np.int64)
    drawn = apportion(size, sizes / sizes.sum())
    counts = np.stack([drawn, sizes - drawn], axis=1)
    own, _ = deal(classes, counts, numpy_generator(seed, "partition", "core"))
    return own


def with_core(columns: Columns, core: Indices, clients: int) -> Columns:
    """Return columns of `CLIENTS_SCHEMA` with the server's own samples, in the role ``core``.

    Their client is the number after the last client's.
    """
    added: Columns = {
        "client": np.full(len(core), clients, dtype=np.int32),
        "sample": np.sort(core).astype(np.int64),
        "role": np.full(len(core), "core"),
    }
    return {name: np.concatenate([column, added[name]]) for name, column in columns.items()}
