"""The core: the server's own labelled training samples, which no client has."""

import numpy as np

from fedstage.data.partitions import Indices, divide
from fedstage.data.partitions.dirichlet import apportion, deal, split_by_class
from fedstage.randomness import numpy_generator
from fedstage.settings.partitions import PartitionSettings


def divide_with_core(
    settings: PartitionSettings, labels: Indices, natural: Indices | None
) -> tuple[list[Indices], Indices | None]:
    """Return the sample indices of each client, and the server's, if it has a core.

    `labels` [n] and `natural` [n] are as in `fedstage.data.partitions.divide`, as are the errors.
    """
    generator = numpy_generator(settings.seed, "partition", "clients")
    scheme, clients = settings.partition, settings.clients
    if settings.core is None:
        return divide(scheme, labels, clients, generator, natural), None
    if settings.core.samples == "stratified":
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
