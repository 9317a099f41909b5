"""Images in folders: the classes, and perhaps the clients, are the names of the folders."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

from fedstage.data.datasets.decoding import Decode, decode, decode_all, decode_one
from fedstage.data.datasets.images import Dataset
from fedstage.data.datasets.labelled import Labelled, named
from fedstage.data.datasets.splits import Rows
from fedstage.data.image_files import Picture, find_images
from fedstage.settings.data import ImageFolder
from fedstage.storage.files import read_bytes


def load(settings: ImageFolder, folder: Path) -> Dataset:
    """Read the images below the data folder as RGB, uint8 [n, 3, H, W].

    Classes and clients are numbered in the order of their names.

    Raises
    ------
    FedstageError
        If an image is missing, damaged, too large or in no folder of a class; if images differ in
        shape and are not resized; or if there are fewer images than a size.
    """
    found = find_images(settings, folder)
    every = [*found.train, *found.test]
    rows = _labelled(settings, every, len(found.train))
    if found.test_fraction is not None:
        rows = rows.divided(found.test_fraction, settings.split_seed)
    split = rows.split(settings)
    paths = [every[row].path for row in rows.order.tolist()]
    first = paths[split.train[0]]
    decoded = partial(decode, size=settings.image_size, resampling=settings.resampling)
    shape = decode_one(read_bytes(first), str(first), decoded).shape

    def samples(own: Rows) -> torch.Tensor:
        return _images([paths[row] for row in own.tolist()], decoded, shape)

    return rows.dataset(split, samples)


def _labelled(settings: ImageFolder, every: Sequence[Picture], train: int) -> Labelled:
    labels = named([picture.label for picture in every])
    owners = [picture.client for picture in every] if settings.client_folders else None
    return Labelled(labels, named(owners) if owners else None, train, np.arange(len(every)))


def _images(paths: Sequence[Path], decoded: Decode, shape: Sequence[int]) -> torch.Tensor:
    pixels = np.empty((len(paths), *shape), np.uint8)
    decode_all(pixels, lambda n: read_bytes(paths[n]), lambda n: str(paths[n]), decoded)
    return torch.from_numpy(pixels)
