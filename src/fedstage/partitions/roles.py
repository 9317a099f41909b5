"""Roles: the part of each client's samples that validates instead of training."""

import numpy as np
import numpy.typing as npt

from fedstage.partitions import Indices
from fedstage.randomness import numpy_generator

Columns = dict[str, npt.NDArray[np.generic]]


def split_roles(assigned: list[Indices], validation: float, seed: int) -> Columns:
    """Draw the validation samples of each client, and list all samples.

    Each client has a generator of its own, so its roles do not depend on the other clients'
    samples.

    Parameters
    ----------
    assigned : list of arrays
        Sample indices of each client.
    validation : float
        Fraction of each client's samples to set aside, in [0, 1).
    seed : int
        Seed of the training line.

    Returns
    -------
    dict of arrays of shape [n]
        Columns of `fedstage.partitions.CLIENTS_SCHEMA`, by client, then sample.
    """
    sizes = [len(samples) for samples in assigned]
    set_aside = [
        draw_validation(size, validation, numpy_generator(seed, "partition", client, "roles"))
        for client, size in enumerate(sizes)
    ]
    return {
        "client": np.repeat(np.arange(len(assigned), dtype=np.int32), sizes),
        "sample": np.concatenate([np.sort(samples) for samples in assigned]).astype(np.int64),
        "role": np.where(np.concatenate(set_aside), "validation", "train"),
    }


def draw_validation(
    size: int, fraction: float, generator: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Mark a random `fraction` of `size` samples, rounded, leaving at least one unmarked."""
    marked = np.zeros(size, dtype=np.bool_)
    count = min(round(fraction * size), size - 1)
    marked[generator.permutation(size)[:count]] = True
    return marked
