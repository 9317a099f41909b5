"""Which samples are kept for training, for testing, and held out without their labels.

The choice depends only on `split_seed` and the sizes of the data set. Samples stay in the data
set's order. Training takes the first rows of a permutation, the held-out part the last, and the
server's validation set the rows before them. A larger `train_size` thus keeps all samples of a
smaller one, and lines with and without the other parts train on the same samples, if there are
enough.

With a `division` there is one permutation of all samples, and each part is a section of it; the
server's validation set is the end of the training section.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedstage.randomness import numpy_generator
from fedstage.settings.data_sets import Sized, count_parts, ends_of

Rows: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """Ascending row numbers that count over all samples: first official training, then test."""

    train: Rows
    test: Rows
    held_out: Rows
    server_validation: Rows


class _Pools(NamedTuple):
    """The rows that each part may have, in the order in which they are taken."""

    train: Rows
    held_out: Rows
    test: Rows


def choose_rows(settings: Sized, train: int, test: int) -> Split:
    """Choose rows of a data set that has `train` training samples and, after them, `test` others.

    Raises
    ------
    FedstageError
        If there are fewer samples than a size, or a share of the division has none.
    """
    counts = count_parts(settings, train, test)
    pools = (_official if settings.division is None else _divided)(settings, train, test)
    remaining = len(pools.train) - counts.server_validation
    return Split(
        train=np.sort(pools.train[: counts.train]),
        test=np.sort(pools.test[: counts.test]),
        held_out=np.sort(pools.held_out),
        server_validation=np.sort(pools.train[remaining:]),
    )


def _official(settings: Sized, train: int, test: int) -> _Pools:
    """Keep training and test samples apart; the held-out part is taken from training."""
    order = permutation(settings.split_seed, "train", train)
    left = train - settings.held_out
    return _Pools(
        order[:left], order[left:], train + permutation(settings.split_seed, "test", test)
    )


def _divided(settings: Sized, train: int, test: int) -> _Pools:
    """Cut one permutation of all samples at the shares, in whole numbers rounded down."""
    assert settings.division is not None, "the caller looks"
    n = train + test
    order = permutation(settings.split_seed, "division", n)
    return _Pools(*np.split(order, ends_of(settings.division, n)[:-1]))


def rows_by_part(sizes: Iterable[int], rows: Rows) -> Iterator[Rows]:
    """Yield the rows of each part, where `rows` (ascending) count over all parts of these sizes."""
    start = 0
    for size in sizes:
        end = start + size
        yield rows[np.searchsorted(rows, start) : np.searchsorted(rows, end)] - start
        start = end


def permutation(split_seed: int, purpose: str, n: int) -> Rows:
    """Permute the row numbers 0..n-1; the same seed and purpose always give the same order."""
    return numpy_generator(split_seed, "dataset", purpose).permutation(n)
