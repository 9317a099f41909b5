"""Dirichlet by client: each client's classes drawn from its own distribution over them."""

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from fedstage.data.partitions import Indices, Owners
from fedstage.data.partitions.dirichlet import deal, split_by_class
from fedstage.settings.partitions import DirichletByClient


def assign(
    settings: DirichletByClient,
    labels: Indices,
    clients: int,
    generator: Generator,
    natural: Owners,
) -> list[Indices]:
    """Give clients of equal sizes samples of classes drawn from q ~ Dir(alpha p).

    Hsu et al. 2019, section 3: p is the prior over the C classes, here their frequencies times C,
    so that balanced classes have the parameters (alpha, ..., alpha). Samples are drawn without
    replacement; a class that has run out is left out, and q renormalised. Clients choose in random
    order, because the last of them have to take what remains; sizes differ by at most 1.
    """
    classes = split_by_class(labels, np.arange(len(labels)))
    left = np.array([len(samples) for samples in classes], dtype=np.int64)
    prior = left / left.mean()
    counts = np.zeros((len(classes), clients), dtype=np.int64)
    sizes = np.diff(np.linspace(0, len(labels), clients + 1).astype(np.int64))
    for client in generator.permutation(clients):
        counts[:, client] = draw(settings.alpha * prior, left, int(sizes[client]), generator)
        left -= counts[:, client]
    return deal(classes, counts, generator)


def draw(
    parameters: npt.NDArray[np.float64], left: Indices, size: int, generator: Generator
) -> Indices:
    """Return how many of the samples `left` a client of `size` gets, by class, [classes].

    Drawing many at once, and redrawing the ones beyond what is left, equals drawing them one by one
    from the classes that have not run out.
    """
    shares = generator.dirichlet(parameters)
    counts = np.zeros_like(left)
    while missing := size - int(counts.sum()):
        open_classes = counts < left
        own = np.where(open_classes & np.isfinite(shares), shares, 0.0)
        if own.sum() == 0:  # all of its classes have run out, or alpha is so small as to underflow
            own[generator.choice(np.flatnonzero(open_classes))] = 1.0
        drawn = generator.multinomial(missing, own / own.sum())
        counts += np.minimum(drawn, left - counts)
    return counts
