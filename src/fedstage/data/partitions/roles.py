"""Roles: the parts of each client's samples that its model is not trained on."""

import numpy as np
import numpy.typing as npt

from fedstage.data.partitions import Indices
from fedstage.randomness import numpy_generator

Columns = dict[str, npt.NDArray[np.generic]]


def split_roles(
    assigned: list[Indices], validation: float, seed: int, aggregator: float = 0.0
) -> Columns:
    """Draw the samples of each client that validate or train an aggregator, and list all samples.

    Each client has a generator of its own, so its roles do not depend on the other clients'
    samples; and which samples validate does not depend on whether others train an aggregator.

    Parameters
    ----------
    assigned : list of arrays
        Sample indices of each client.
    validation : float
        Fraction of each client's samples to set aside, in [0, 1).
    seed : int
        Seed of the training line.
    aggregator : float
        Fraction of the samples that are left, in [0, 1): the D_i2 of FENS, Algorithm 2.

    Returns
    -------
    dict of arrays of shape [n]
        Columns of `fedstage.data.partitions.CLIENTS_SCHEMA`, by client, then sample.
    """
    sizes = [len(samples) for samples in assigned]
    generators = (numpy_generator(seed, "partition", n, "roles") for n in range(len(sizes)))
    roles = [
        draw_roles(size, validation, aggregator, generator)
        for size, generator in zip(sizes, generators, strict=True)
    ]
    return {
        "client": np.repeat(np.arange(len(assigned), dtype=np.int32), sizes),
        "sample": np.concatenate([np.sort(samples) for samples in assigned]).astype(np.int64),
        "role": np.concatenate(roles),
    }


def draw_roles(
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
