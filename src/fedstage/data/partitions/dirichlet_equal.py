"""FedDF's Dirichlet variant: drawn in blocks of clients and re-cut to equal sizes."""

import numpy as np
from numpy.random import Generator

from fedstage.data.partitions import Indices, Owners
from fedstage.data.partitions.dirichlet import redraw, split_by_class
from fedstage.settings.partitions import DirichletEqual

#: Clients in a draw.
BLOCK = 10


def assign(
    settings: DirichletEqual, labels: Indices, clients: int, generator: Generator, natural: Owners
) -> list[Indices]:
    """Draw each block of 10 clients, then cut the concatenated list into equal parts.

    As in the code of Lin et al. 2020. The re-cut moves samples between neighbours in the list, so
    the label skew is weaker than alpha implies. Sizes differ by at most 1.

    Raises
    ------
    FedstageError
        If a block has a client below half of the block's mean in each of `max_draws` draws.
    """
    widths = block_widths(clients)
    # Floors of n * (clients so far) / clients: as n >= clients, every block has enough samples.
    edges = np.cumsum(widths)[:-1] * len(labels) // clients
    blocks = np.split(generator.permutation(len(labels)), edges)
    drawn = [
        draw_block(settings, labels, block, width, generator)
        for block, width in zip(blocks, widths, strict=True)
    ]
    return np.array_split(np.concatenate(drawn), clients)


def block_widths(clients: int) -> list[int]:
    """Return the number of clients of each block: 10, and the rest in the last one."""
    return [min(BLOCK, clients - start) for start in range(0, clients, BLOCK)]


def draw_block(
    settings: DirichletEqual, labels: Indices, samples: Indices, clients: int, generator: Generator
) -> Indices:
    """Divide `samples` until none of a block's clients has less than half of the mean.

    The result lists the samples of one client after the other.
    """
    half_of_mean = -(-len(samples) // (2 * clients))
    minimum = half_of_mean, f"half of their block's mean, {half_of_mean},"
    classes = split_by_class(labels, samples)
    return np.concatenate(redraw(classes, clients, settings, True, minimum, generator))
