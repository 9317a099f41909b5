"""Handwritten digits that scikit-learn brings along: a data set without a download."""

import numpy as np
import torch

from fedstage.config import Digits
from fedstage.data.images import Dataset, Images
from fedstage.data.splits import check_size, permutation

_HIGHEST = 16  # scikit-learn's grey levels are 0..16


def load_digits(settings: Digits) -> Dataset:
    """Read the digits: 1,797 images [1, 8, 8], grey levels 0..16 scaled to 0..255 and rounded.

    A fixed permutation is cut into `test`, then `held_out`, then all others for training.

    Raises
    ------
    FedstageError
        If `test` and `held_out` leave nothing to train on.
    """
    from sklearn import datasets

    bunch = datasets.load_digits()
    images = torch.from_numpy(np.rint(bunch.images * (255 / _HIGHEST)).astype(np.uint8))
    images = images.unsqueeze(1)
    labels = torch.from_numpy(bunch.target.astype(np.int64))
    test, held_out, train = _cut(settings, len(labels))
    return Dataset(
        train=Images(images[train], labels[train]),
        test=Images(images[test], labels[test]),
        held_out=images[held_out],
        class_names=tuple(str(name) for name in bunch.target_names),
    )


def _cut(settings: Digits, n: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    check_size("test", settings.test, n - 1, f"{n} images, one must stay for training")
    reason = f"{n} images, test = {settings.test}, one must stay for training"
    check_size("held_out", settings.held_out, n - settings.test - 1, reason)
    order = torch.from_numpy(permutation(settings.split_seed, "split", n))
    held_out_end = settings.test + settings.held_out
    return order[: settings.test], order[settings.test : held_out_end], order[held_out_end:]
