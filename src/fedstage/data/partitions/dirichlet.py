"""Dirichlet: each class divided over the clients by proportions drawn from Dir(alpha)."""

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from fedstage.data.partitions import Indices, Owners
from fedstage.errors import FedstageError
from fedstage.settings.partitions import Dirichlet, DirichletEqual


def assign(
    settings: Dirichlet, labels: Indices, clients: int, generator: Generator, natural: Owners
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
    raise FedstageError(
        f"partition.max_draws = {settings.max_draws}: no Dirichlet draw gave each of {clients} "
        f"clients {minimum[1]} samples (the smallest client of the best draw has {smallest}); "
        f"raise partition.alpha = {alpha:g}, lower the minimum, use fewer "
        "clients, or raise partition.max_draws"
    )


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
