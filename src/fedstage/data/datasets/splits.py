"""Which samples are kept for training, for testing, and held out without their labels.

The choice depends only on `split_seed` and the sizes of the data set. Samples stay in the data
set's order. Training takes the first rows of a permutation, the held-out part the last, and the
server's validation set those before them. So a larger `train_size` keeps all samples of a smaller
one, and lines with and without the other parts train on the same samples, if there are enough.

With a `division` there is one permutation of all samples, and each part is a piece of it; within
the piece for training the server's validation set is the end.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedstage.errors import FedstageError
from fedstage.randomness import numpy_generator
from fedstage.settings.data_sets import Sized

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
    reason: str  # of the number of rows for training, for messages


def choose_rows(settings: Sized, train: int, test: int) -> Split:
    """Choose rows of a data set that has `train` training samples and, after them, `test` others.

    Raises
    ------
    FedstageError
        If there are fewer samples than a size, or a share of the division is of none.
    """
    pools = (_official if settings.division is None else _divided)(settings, train, test)
    own, reason = settings.server_validation, pools.reason
    check_size("server_validation", own, len(pools.train) - 1, f"{reason}, one must stay")
    remaining = len(pools.train) - own
    if own:
        reason = f"{reason}, server_validation = {own}"
    train_size = settings.train_size or remaining
    if settings.train_fraction is not None:
        train_size = max(1, round(settings.train_fraction * remaining))
    check_size("train_size", train_size, remaining, reason)
    tested = len(pools.test)
    test_size = check_size(
        "test_size", settings.test_size or tested, tested, f"{tested} for testing"
    )
    return Split(
        train=np.sort(pools.train[:train_size]),
        test=np.sort(pools.test[:test_size]),
        held_out=np.sort(pools.held_out),
        server_validation=np.sort(pools.train[remaining:]),
    )


def _official(settings: Sized, train: int, test: int) -> _Pools:
    """Keep training and test samples apart; the held-out part is taken from training."""
    held_out = settings.held_out
    check_size("held_out", held_out, train - 1, f"{train} for training, one must stay")
    order = permutation(settings.split_seed, "train", train)
    return _Pools(
        train=order[: train - held_out],
        held_out=order[train - held_out :],
        test=train + permutation(settings.split_seed, "test", test),
        reason=f"{train} for training, held_out = {held_out}",
    )


def _divided(settings: Sized, train: int, test: int) -> _Pools:
    """Cut one permutation of all samples at the shares, in whole numbers rounded down."""
    assert settings.division is not None, "the caller looks"
    shares, n = settings.division, train + test
    ends = [n * end // sum(shares) for end in accumulate(shares)]
    order = permutation(settings.split_seed, "division", n)
    train_rows, held_out, test_rows = parts = np.split(order, ends[:-1])
    written = f"division = {list(shares)}"
    if any(share and not len(part) for share, part in zip(shares, parts, strict=True)):
        raise FedstageError(f"data.{written}: each share must have a sample, and there are {n}")
    return _Pools(train_rows, held_out, test_rows, f"{ends[0]} for training, {written}")


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


def check_size(key: str, value: int, available: int, reason: str) -> int:
    """Return `value`, the number of samples of setting `key`, if that many are available."""
    if value > available:
        raise FedstageError(f"data.{key} = {value}: at most {available} (there are {reason})")
    return value
