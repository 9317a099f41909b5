"""Which samples are kept for training, for testing, and held out without their labels.

The choice depends on `split_seed` and on the sizes of the data set only. Kept samples stay in the
data set's own order. Training takes the first of a permutation, the held-out part its last, and the
server's validation set those before these: a larger `train_size` keeps all that a smaller one
keeps, and lines with and without the other parts train on the same samples as long as there are
enough for all.
"""

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
        If a size asks for more samples than there are.
    """
    check_size("held_out", settings.held_out, train - 1, f"{train} for training, one must stay")
    public = train - settings.held_out
    reason = f"{train} for training, held_out = {settings.held_out}"
    own = settings.server_validation
    check_size("server_validation", own, public - 1, f"{reason}, one must stay")
    remaining = public - own
    if own:
        reason = f"{reason}, server_validation = {own}"
    train_size = check_size("train_size", _train_size(settings, remaining), remaining, reason)
    test_size = check_size("test_size", settings.test_size or test, test, f"{test} for testing")
    order = permutation(settings.split_seed, "train", train)
    return Split(
        train=np.sort(order[:train_size]),
        test=np.sort(permutation(settings.split_seed, "test", test)[:test_size]),
        held_out=np.sort(order[public:]),
        server_validation=np.sort(order[remaining:public]),
    )


def _train_size(settings: Sized, available: int) -> int:
    if settings.train_fraction is not None:
        return max(1, round(settings.train_fraction * available))
    return settings.train_size or available


def permutation(split_seed: int, purpose: str, n: int) -> Rows:
    """Permute the row numbers 0..n-1; the same seed and purpose always give the same order."""
    return numpy_generator(split_seed, "dataset", purpose).permutation(n)


def check_size(key: str, value: int, available: int, reason: str) -> int:
    """Return `value`, the number of samples asked for by `key`, if that many are available.

    Raises
    ------
    FedstageError
        If there are fewer.
    """
    if value > available:
        raise FedstageError(f"data.{key} = {value}: at most {available} (there are {reason})")
    return value
