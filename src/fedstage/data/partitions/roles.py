"""Roles: each client's samples for training, validation and an aggregator, and their counts."""

import numpy as np
import numpy.typing as npt

from fedstage.data.partitions import Indices
from fedstage.randomness import numpy_generator

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
    roles = []
    for client, size in enumerate(sizes):
        generator = numpy_generator(seed, "partition", client, "roles")
        roles.append(_draw_roles(size, validation, aggregator, generator))
    return {
        "client": np.repeat(np.arange(len(assigned), dtype=np.int32), sizes),
        "sample": np.concatenate([np.sort(samples) for samples in assigned]).astype(np.int64),
        "role": np.concatenate(roles),
    }


def _draw_roles(
    size: int, validation: float, aggregator: float, generator: np.random.Generator
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
