"""Handwritten digits, which are part of scikit-learn: a data set without a download."""

import gzip
import zlib
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from fedstage.data.datasets.images import Dataset, Images
from fedstage.data.datasets.splits import Split, check_size, permutation
from fedstage.errors import FedstageError
from fedstage.settings.data import Digits

_HIGHEST = 16  # scikit-learn's grey levels are 0..16


def load(settings: Digits, folder: Path | None = None) -> Dataset:
    """Read the digits: 1,797 images [1, 8, 8], grey levels 0..16 scaled to 0..255 and rounded.

    A fixed permutation is cut into `test`, `held_out`, `server_validation` and the training set.

    Raises
    ------
    FedstageError
        If scikit-learn's file is missing or damaged, or nothing is left for training.
    """
    read = _read(_find())
    grey = read[:, :-1].reshape(-1, 1, 8, 8)
    images = torch.from_numpy(np.rint(grey * (255 / _HIGHEST)).astype(np.uint8))
    labels = torch.from_numpy(read[:, -1].astype(np.int64))
    rows = _cut(settings, len(labels))
    return rows.dataset(lambda own: Images(images[own], labels[own]), tuple("0123456789"))


def _find() -> Path:
    """Return the file of the digits in scikit-learn, without importing it, which takes 2 s."""
    package = find_spec("sklearn")
    if package is None or package.origin is None:
        raise FedstageError("data = digits: scikit-learn, which has them, is not installed")
    return Path(package.origin).parent / "datasets/data/digits.csv.gz"


def _read(path: Path) -> NDArray[np.float64]:
    """Return one row per image: 64 grey levels, and the digit."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return np.loadtxt(file, delimiter=",")
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise FedstageError(f"{path}: {error}; install scikit-learn again") from None


def _cut(settings: Digits, n: int) -> Split:
    parts = {key: getattr(settings, key) for key in ("test", "held_out", "server_validation")}
    taken, left = "", n
    for key, size in parts.items():
        check_size(key, size, left - 1, f"{n} images{taken}, one must stay for training")
        taken, left = f"{taken}, {key} = {size}", left - size
    order = permutation(settings.split_seed, "split", n)
    *cut, train = np.split(order, list(accumulate(parts.values())))
    return Split(train=train, **dict(zip(parts, cut, strict=True)))
