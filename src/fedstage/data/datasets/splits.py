"""Which samples are kept for training, for testing, and held out without their labels.

The choice depends only on `split_seed` and the sizes of the data set. Samples stay in the data
set's order. Training takes the first rows of a permutation, the held-out part the last, and the
server's validation set the rows before them. A larger `train_size` thus keeps all samples of a
smaller one, and lines with and without the other parts train on the same samples, if there are
enough.

With a `division` there is one permutation of all samples, and each part is a section of it; the
server's validation set is the end of the training section.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedstage.data.datasets.images import Dataset, Images
from fedstage.errors import FedstageError, each
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

    def dataset(
        self, samples: Callable[[Rows], Images], class_names: tuple[str, ...], **known: Any
    ) -> Dataset:
        """Return a data set with the `samples` of each part's rows; the faults of all are told."""
        parts = each(samples, [self.train, self.test, self.held_out, self.server_validation])
        train, test, public, own = parts
        return Dataset(train, test, public.images, own, class_names, **known)


def choose_rows(settings: Sized, train: int, test: int) -> Split:
    """Choose rows of a data set that has `train` training samples and, after them, `test` others.

    Raises
    ------
    FedstageError
        If there are fewer samples than a size, or a share of the division has none.
    """
    if settings.division is not None:
        pool, held_out, tests = _divided(settings.division, settings.split_seed, train + test)
        reason = f"{len(pool)} for training, division = {list(settings.division)}"
    else:
        check_size("held_out", settings.held_out, train - 1, f"{train} for training, one must stay")
        order = permutation(settings.split_seed, "train", train)
        pool, held_out = np.split(order, [train - settings.held_out])
        tests = train + permutation(settings.split_seed, "test", test)
        reason = f"{train} for training, held_out = {settings.held_out}"
    own = settings.server_validation
    check_size("server_validation", own, len(pool) - 1, f"{reason}, one must stay")
    remaining = len(pool) - own
    kept = settings.train_size or remaining
    if settings.train_fraction is not None:
        kept = max(1, round(settings.train_fraction * remaining))
    check_size("train_size", kept, remaining, f"{reason}, server_validation = {own}")
    tested = settings.test_size or len(tests)
    check_size("test_size", tested, len(tests), f"{len(tests)} for testing")
    chosen = (pool[:kept], tests[:tested], held_out, pool[remaining:])
    return Split(*map(np.sort, chosen))


def _divided(shares: tuple[int, int, int], seed: int, n: int) -> list[Rows]:
    """Cut one permutation of all samples at the shares, in whole numbers rounded down."""
    ends = [n * end // sum(shares) for end in accumulate(shares)]
    parts = np.split(permutation(seed, "division", n), ends[:-1])
    if any(share and not len(part) for share, part in zip(shares, parts, strict=True)):
        fault = f"each share must have a sample, and there are {n}"
        raise FedstageError(f"data.division = {list(shares)}: {fault}")
    return parts


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
