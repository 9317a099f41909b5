"""Which samples are kept for training, for testing, and held out without their labels.

The choice depends only on `split_seed` and the sizes of the data set. Samples stay in the data
set's order. Training takes the first rows of a permutation, the held-out part the last, and the
server's validation set those before them. So a larger `train_size` keeps all samples of a smaller
one, and lines with and without the other parts train on the same samples, if there are enough.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedstage.errors import FedstageError
from fedstage.randomness import numpy_generator
from fedstage.settings.data import Sized

Rows: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """Ascending row numbers: `test` of the test set, the others of the training set."""

    train: Rows
    test: Rows
    held_out: Rows
    server_validation: Rows


def choose_rows(settings: Sized, train: int, test: int) -> Split:
    """Choose rows of a data set that has `train` training and `test` test samples.

    Raises
    ------
    FedstageError
        If there are fewer samples than a size.
    """
    check_size("held_out", settings.held_out, train - 1, f"{train} for training, one must stay")
    public = train - settings.held_out
    reason = f"{train} for training, held_out = {settings.held_out}"
    own = settings.server_validation
    check_size("server_validation", own, public - 1, f"{reason}, one must stay")
    remaining = public - own
    if own:
        reason = f"{reason}, server_validation = {own}"
    train_size = settings.train_size or remaining
    if settings.train_fraction is not None:
        train_size = max(1, round(settings.train_fraction * remaining))
    check_size("train_size", train_size, remaining, reason)
    test_size = check_size("test_size", settings.test_size or test, test, f"{test} for testing")
    order = permutation(settings.split_seed, "train", train)
    return Split(
        train=np.sort(order[:train_size]),
        test=np.sort(permutation(settings.split_seed, "test", test)[:test_size]),
        held_out=np.sort(order[public:]),
        server_validation=np.sort(order[remaining:public]),
    )


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
