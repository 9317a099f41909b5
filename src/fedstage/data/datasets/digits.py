"""Handwritten digits, which are part of scikit-learn: a data set without a download."""

from pathlib import Path

import numpy as np
import torch

from fedstage.data.datasets.images import Dataset, Images
from fedstage.data.datasets.splits import check_size, permutation
from fedstage.settings.data import Digits

_HIGHEST = 16  # scikit-learn's grey levels are 0..16


def load(settings: Digits, folder: Path | None = None) -> Dataset:
    """Read the digits: 1,797 images [1, 8, 8], grey levels 0..16 scaled to 0..255 and rounded.

    A fixed permutation is cut into `test`, `held_out`, `server_validation` and the training set.

    Raises
    ------
    FedstageError
        If nothing is left for training.
    """
    from sklearn import datasets

    bunch = datasets.load_digits()
    images = torch.from_numpy(np.rint(bunch.images * (255 / _HIGHEST)).astype(np.uint8))[:, None]
    labels = torch.from_numpy(bunch.target.astype(np.int64))
    test, held_out, server, train = _cut(settings, len(labels))
    return Dataset(
        train=Images(images[train], labels[train]),
        test=Images(images[test], labels[test]),
        held_out=images[held_out],
        server_validation=Images(images[server], labels[server]),
        class_names=tuple(str(name) for name in bunch.target_names),
    )


def _cut(settings: Digits, n: int) -> list[torch.Tensor]:
    check_size("test", settings.test, n - 1, f"{n} images, one must stay for training")
    taken, sizes = f"test = {settings.test}", [settings.test]
    for key in ("held_out", "server_validation"):
        reason = f"{n} images, {taken}, one must stay for training"
        size = check_size(key, getattr(settings, key), n - sum(sizes) - 1, reason)
        taken, sizes = f"{taken}, {key} = {size}", [*sizes, size]
    order = torch.from_numpy(permutation(settings.split_seed, "split", n))
    return list(order.split([*sizes, n - sum(sizes)]))
