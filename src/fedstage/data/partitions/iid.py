"""Independent and identically distributed: shuffled and dealt out evenly."""

import numpy as np
from numpy.random import Generator

from fedstage.data.partitions import Indices, Owners
from fedstage.settings.partitions import Iid


def assign(
    settings: Iid, labels: Indices, clients: int, generator: Generator, natural: Owners
) -> list[Indices]:
    """Cut a permutation of the samples into equal parts; sizes differ by at most 1."""
    return np.array_split(generator.permutation(len(labels)), clients)
