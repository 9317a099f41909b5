"""Dirichlet schemes: classes of clients, or clients of classes, in proportions from Dir(alpha)."""

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from fedstage.data.partitions import Indices, Owners
from fedstage.errors import FedstageError
from fedstage.settings.partitions import Dirichlet, DirichletByClient, DirichletEqual

#: Clients in a draw of the scheme `dirichlet_equal`.
BLOCK = 10


def assign(
    settings: Dirichlet | DirichletByClient | DirichletEqual,
    labels: Indices, clients: int, generator: Generator, natural: Owners,
) -> list[Indices]:  # fmt: skip
    """Divide the samples by one of the schemes; FedstageError if its minimum cannot be met."""
    if isinstance(settings, DirichletByClient):
        return by_client(settings.alpha, labels, clients, generator)
    if isinstance(settings, DirichletEqual):
        return in_blocks(settings, labels, clients, generator)
    return by_class(settings, labels, clients, generator)


def by_class(
    settings: Dirichlet, labels: Indices, clients: int, generator: Generator
) -> list[Indices]:
    """Draw until every client has `min_samples`; sizes vary.

    Yurochkin et al. 2019, experiments, with the `mask` of their code; classes in ascending order.

    Raises
    ------
    FedstageError
        If `min_samples` cannot be met at all, or was not met within `max_draws` draws.
    """
    if settings.min_samples * clients > len(labels):
        most = f"at most {len(labels) // clients}, as {clients} clients share {len(labels)} samples"
        raise FedstageError(f"partition.min_samples = {settings.min_samples}: {most}")
    classes = split_by_class(labels, np.arange(len(labels)))
    minimum = settings.min_samples, f"partition.min_samples = {settings.min_samples}"
    return redraw(classes, clients, settings, settings.mask, minimum, generator)


def split_by_class(labels: Indices, samples: Indices) -> list[Indices]:
    """Return the samples of each class that occurs, classes ascending."""
    own = labels[samples]
    return [samples[own == label] for label in np.unique(own)]


def redraw(
    classes: list[Indices], clients: int, settings: Dirichlet | DirichletEqual, mask: bool,
    minimum: tuple[int, str], generator: Generator,
) -> list[Indices]:  # fmt: skip
    """Divide the samples of each class until every client has a minimum, and return each client's.

    `minimum` is also given as messages call it.

    Raises
    ------
    FedstageError
        If none of `max_draws` draws suffices.
    """
    smallest, alpha = 0, settings.alpha
    sizes = np.array([len(samples) for samples in classes], dtype=np.int64)
    for _ in range(settings.max_draws):
        counts = draw_counts(sizes, clients, alpha=alpha, mask=mask, generator=generator)
        if counts is None:
            continue
        smallest = max(smallest, int(counts.sum(axis=0).min()))
        if smallest >= minimum[0]:
            return deal(classes, counts, generator)
    fault = f"no Dirichlet draw gave each of {clients} clients {minimum[1]} samples"
    best = f"the smallest client of the best draw has {smallest}"
    hint = f"raise it or partition.alpha = {alpha:g}, lower the minimum, or use fewer clients"
    raise FedstageError(f"partition.max_draws = {settings.max_draws}: {fault} ({best}); {hint}")


def draw_counts(
    sizes: Indices, clients: int, *, alpha: float, mask: bool, generator: Generator
) -> Indices | None:
    """Draw the number of samples of each class and client, [classes, clients].

    `sizes` are the numbers of samples of each class, none of them 0. The result is None if
    proportions are NaN or all 0, as happens for a huge alpha.

    With `mask`, a client that already has its even share, n / clients samples, gets none of the
    later classes. Published code multiplies the proportions of such clients by 0 and renormalises;
    here Dir(alpha) is drawn over the other clients only. That is the same distribution (a
    Dirichlet's renormalised part is Dirichlet), but is never 0/0 when a small alpha makes all their
    proportions underflow.
    """
    counts = np.zeros((len(sizes), clients), dtype=np.int64)
    held = np.zeros(clients, dtype=np.int64)
    for row, size in zip(counts, sizes, strict=True):
        receiving = np.flatnonzero(held * clients < sizes.sum()) if mask else np.arange(clients)
        proportions = generator.dirichlet(np.full(len(receiving), alpha))
        total = proportions.sum()
        if not (np.isfinite(total) and total > 0):
            return None
        row[receiving] = apportion(size, proportions)
        held += row
    return counts


def apportion(size: int, proportions: npt.NDArray[np.float64]) -> Indices:
    """Cut `size` samples at the rounded cumulative proportions.

    Truncation would, on average, move half a sample of every class from the first client to the
    last one.
    """
    cumulative = np.cumsum(proportions)
    # Divided by its last value, so that trailing clients with proportion 0 get exactly 0.
    edges = np.rint(cumulative / cumulative[-1] * size).astype(np.int64)
    counts: Indices = np.diff(edges, prepend=0)
    return counts


def deal(classes: list[Indices], counts: Indices, generator: Generator) -> list[Indices]:
    """Shuffle each class and cut it by its row of `counts` [classes, clients]."""
    pieces = [
        np.split(generator.permutation(samples), np.cumsum(row)[:-1])
        for samples, row in zip(classes, counts, strict=True)
    ]
    return [np.concatenate(own) for own in zip(*pieces, strict=True)]


# --- each client's own distribution over the classes ----------------------------------------------


def by_client(alpha: float, labels: Indices, clients: int, generator: Generator) -> list[Indices]:
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
        counts[:, client] = draw(alpha * prior, left, int(sizes[client]), generator)
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


# --- blocks of clients ----------------------------------------------------------------------------


def in_blocks(
    settings: DirichletEqual, labels: Indices, clients: int, generator: Generator
) -> list[Indices]:
    """Draw each block of 10 clients, then cut the concatenated list into equal parts.

    As in the code of Lin et al. 2020. The re-cut moves samples between neighbours in the list, so
    the label skew is weaker than alpha implies. Sizes differ by at most 1.

    Raises
    ------
    FedstageError
        If a block has a client below half of the block's mean in each of `max_draws` draws.
    """
    widths = [min(BLOCK, clients - start) for start in range(0, clients, BLOCK)]
    # Floors of n * (clients so far) / clients: as n >= clients, every block has enough samples.
    edges = np.cumsum(widths)[:-1] * len(labels) // clients
    blocks = np.split(generator.permutation(len(labels)), edges)
    drawn = [
        draw_block(settings, labels, block, width, generator)
        for block, width in zip(blocks, widths, strict=True)
    ]
    return np.array_split(np.concatenate(drawn), clients)


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
