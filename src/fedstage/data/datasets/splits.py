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
    reason: str  # for the number of training samples, as messages give it


def choose_rows(settings: Sized, train: int, test: int) -> Split:
    """Choose rows of a data set that has `train` training samples and, after them, `test` others.

    Raises
    ------
    FedstageError
        If there are fewer samples than a size, or a share of the division has none.
    """
    pools = (_official if settings.division is None else _divided)(settings, train, test)
    own, reason = settings.server_validation, pools.reason
    check_size("server_validation", own, len(pools.train) - 1, f"{reason}, one must stay")
    remaining = len(pools.train) - own
    if own:
        reason = f"{reason}, server_validation = {own}"
    kept = settings.train_size or remaining
    if settings.train_fraction is not None:
        kept = max(1, round(settings.train_fraction * remaining))
    check_size("train_size", kept, remaining, reason)
    tested = settings.test_size or len(pools.test)
    check_size("test_size", tested, len(pools.test), f"{len(pools.test)} for testing")
    return Split(
        train=np.sort(pools.train[:kept]),
        test=np.sort(pools.test[:tested]),
        held_out=np.sort(pools.held_out),
        server_validation=np.sort(pools.train[remaining:]),
    )


def _official(settings: Sized, train: int, test: int) -> _Pools:
    """Keep training and test samples apart; the held-out part is taken from training."""
    held_out = settings.held_out
    check_size("held_out", held_out, train - 1, f"{train} for training, one must stay")
    order, left = permutation(settings.split_seed, "train", train), train - held_out
    tests = train + permutation(settings.split_seed, "test", test)
    return _Pools(order[:left], order[left:], tests, f"{train} for training, held_out = {held_out}")


def _divided(settings: Sized, train: int, test: int) -> _Pools:
    """Cut one permutation of all samples at the shares, in whole numbers rounded down."""
    assert settings.division is not None, "the caller looks"
    shares, n = settings.division, train + test
    ends = [n * end // sum(shares) for end in accumulate(shares)]
    parts = np.split(permutation(settings.split_seed, "division", n), ends[:-1])
    written = f"division = {list(shares)}"
    if any(share and not len(part) for share, part in zip(shares, parts, strict=True)):
        raise FedstageError(f"data.{written}: each share must have a sample, and there are {n}")
    own, held_out, tested = parts
    return _Pools(own, held_out, tested, f"{ends[0]} for training, {written}")


def check_size(key: str, value: int, available: int, reason: str) -> None:
    """Refuse `value`, the number of samples of setting `key`, unless that many are available."""
    if value > available:
        raise FedstageError(f"data.{key} = {value}: at most {available} (there are {reason})")


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
