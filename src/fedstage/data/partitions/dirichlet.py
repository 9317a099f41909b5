"""Dirichlet: each class divided over the clients by proportions drawn from Dir(alpha)."""

import numpy as np
import numpy.typing as npt

from fedstage.data.partitions import Indices
from fedstage.errors import FedstageError
from fedstage.settings.partitions import Dirichlet


def assign(
    settings: Dirichlet,
    labels: Indices,
    clients: int,
    generator: np.random.Generator,
    natural: Indices | None,
) -> list[Indices]:
    """Draw until every client has `min_samples`; sizes vary.

    Yurochkin et al. 2019, experiments, with the `mask` of their code; classes in ascending order.

    Raises
    ------
    FedstageError
        If `min_samples` cannot be met at all, or was not met within `max_draws` draws.
    """
    _check_enough(settings, clients, len(labels))
    classes = split_by_class(labels, np.arange(len(labels)))
    counts, smallest = redraw(
        class_sizes(classes),
        clients,
        alpha=settings.alpha,
        mask=settings.mask,
        minimum=settings.min_samples,
        max_draws=settings.max_draws,
        generator=generator,
    )
    if counts is None:
        raise FedstageError(_exhausted(settings, clients, smallest))
    return deal(classes, counts, generator)


def split_by_class(labels: Indices, samples: Indices) -> list[Indices]:
    """Return those of `samples` that are of each class which occurs, classes ascending."""
    own = labels[samples]
    return [samples[own == label] for label in np.unique(own)]


def class_sizes(classes: list[Indices]) -> Indices:
    """Return how many samples each class has."""
    return np.array([len(samples) for samples in classes], dtype=np.int64)


def redraw(
    sizes: Indices,
    clients: int,
    *,
    alpha: float,
    mask: bool,
    minimum: int,
    max_draws: int,
    generator: np.random.Generator,
) -> tuple[Indices | None, int]:
    """Repeat `draw_counts` until every client has `minimum` samples, at most `max_draws` times.

    Returns
    -------
    counts : array of shape [classes, clients], or None
        The first draw that suffices.
    smallest : int
        Samples of the smallest client in the best draw: at least `minimum` if there are counts.
    """
    smallest = 0
    for _ in range(max_draws):
        counts = draw_counts(sizes, clients, alpha=alpha, mask=mask, generator=generator)
        if counts is None:
            continue
        smallest = max(smallest, int(counts.sum(axis=0).min()))
        if smallest >= minimum:
            return counts, smallest
    return None, smallest


def draw_counts(
    sizes: Indices, clients: int, *, alpha: float, mask: bool, generator: np.random.Generator
) -> Indices | None:
    """Draw how many samples of each class each client gets.

    With `mask`, a client that already holds its even share, n / clients samples, gets none of the
    later classes. Published code multiplies the proportions of such clients by 0 and renormalises;
    here Dir(alpha) is drawn over the other clients only. That is the same distribution (a
    Dirichlet's renormalised part is Dirichlet), but is never 0/0 when a small alpha makes the
    proportions of all of them underflow.

    Parameters
    ----------
    sizes : array of shape [classes]
        Samples of each class, none 0.

    Returns
    -------
    array of shape [classes, clients], or None
        None if some proportions were NaN or all 0, as happens for a huge alpha.
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

    Rounded and not truncated: truncation would, on average, move half a sample of every class from
    the first client to the last one.
    """
    cumulative = np.cumsum(proportions)
    # Divided by its own last value, so that clients of proportion 0 at the end get exactly 0.
    edges = np.rint(cumulative / cumulative[-1] * size).astype(np.int64)
    counts: Indices = np.diff(edges, prepend=0)
    return counts


def deal(classes: list[Indices], counts: Indices, generator: np.random.Generator) -> list[Indices]:
    """Shuffle each class and cut it by its row of `counts` [classes, clients]."""
    pieces = [
        np.split(generator.permutation(samples), np.cumsum(row)[:-1])
        for samples, row in zip(classes, counts, strict=True)
    ]
    return [np.concatenate(own) for own in zip(*pieces, strict=True)]


def _check_enough(settings: Dirichlet, clients: int, samples: int) -> None:
    if settings.min_samples * clients > samples:
        raise FedstageError(
            f"partition.min_samples = {settings.min_samples}: at most {samples // clients}, as "
            f"{clients} clients share {samples} training samples"
        )


def _exhausted(settings: Dirichlet, clients: int, smallest: int) -> str:
    return (
        f"partition.max_draws = {settings.max_draws}: no Dirichlet draw gave each of {clients} "
        f"clients partition.min_samples = {settings.min_samples} samples (the smallest client of "
        f"the best draw has {smallest}); raise partition.alpha = {settings.alpha:g}, lower "
        "partition.min_samples, use fewer clients, or raise partition.max_draws"
    )
