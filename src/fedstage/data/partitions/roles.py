"""Roles: each client's samples for training, validation and an aggregator, and their counts."""

from functools import partial

import numpy as np
import numpy.typing as npt

from fedstage.data.partitions import Indices, divide
from fedstage.data.partitions.dirichlet import apportion, deal, split_by_class
from fedstage.errors import FedstageError
from fedstage.randomness import numpy_generator
from fedstage.settings.partitions import PartitionSettings

Columns = dict[str, npt.NDArray[np.generic]]


def split_roles(
    assigned: list[Indices], validation: float, seed: int, aggregator: float = 0.0
) -> Columns:
    """Draw the roles of each client's samples: columns of `CLIENTS_SCHEMA`, by client, then sample.

    Each client has its own generator, so its roles do not depend on other clients' samples; and the
    validation samples do not depend on the aggregator's.

    Parameters
    ----------
    assigned : list of arrays
        Sample indices of each client.
    validation : float
        Fraction of each client's samples for validation, in [0, 1).
    aggregator : float
        Fraction of the remaining samples, in [0, 1): the D_i2 of FENS, Algorithm 2.
    """
    sizes = [len(samples) for samples in assigned]
    generators = (numpy_generator(seed, "partition", n, "roles") for n in range(len(sizes)))
    roles = map(partial(_draw_roles, validation, aggregator), generators, sizes)
    return {
        "client": np.repeat(np.arange(len(assigned), dtype=np.int32), sizes),
        "sample": np.concatenate([np.sort(samples) for samples in assigned]).astype(np.int64),
        "role": np.concatenate([*roles]),
    }


def _draw_roles(
    validation: float, aggregator: float, generator: np.random.Generator, size: int
) -> npt.NDArray[np.str_]:
    """Draw the roles of a client's samples: fractions are rounded, and at least one trains."""
    order = generator.permutation(size)
    validating = min(round(validation * size), size - 1)
    left = size - validating
    aggregating = min(round(aggregator * left), left - 1)
    roles = np.full(size, "train", dtype="<U10")
    roles[order[:validating]] = "validation"
    roles[order[size - aggregating :]] = "aggregator"
    return roles


def label_histogram(columns: Columns, labels: Indices) -> Columns:
    """Count the samples of each client, role and label that occur, sorted.

    `labels` [n] are the classes of all training samples; `columns` follow `CLIENTS_SCHEMA`, the
    result `HISTOGRAM_SCHEMA`.
    """
    roles, role = np.unique(columns["role"], return_inverse=True)
    keys = np.stack([columns["client"], role, labels[columns["sample"]]])
    (client, role, label), samples = np.unique(keys, axis=1, return_counts=True)
    return {"client": client, "role": roles[role], "label": label, "samples": samples}


# --- the server's core ----------------------------------------------------------------------------


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
        if scheme.name == "table":
            raise FedstageError("core.samples = 'stratified': not with partition = table")
        if len(labels) <= clients:
            most = f"with a core, at most {len(labels) - 1}, one less than training samples"
            raise FedstageError(f"clients = {clients}: {most}")
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
