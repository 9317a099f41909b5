"""Images in folders: the classes, and perhaps the clients, are the names of the folders."""

from pathlib import Path

import numpy as np
import torch

from fedstage.data.datasets.decoding import Decoder
from fedstage.data.datasets.images import Dataset
from fedstage.data.datasets.labelled import Labelled, named
from fedstage.data.datasets.splits import Rows
from fedstage.data.excerpts import normal
from fedstage.data.layouts import find_files
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
    found = find_files(settings, folder)
    found.tell(folder / settings.folder)
    every = [*found.train, *found.test]
    labels = named([normal(path.parts[-2]) for path in every])
    clients = None
    if settings.client_folders:
        clients = named([normal(path.parts[-3]) for path in every])
    rows = Labelled(labels, clients, None, len(found.train), np.arange(len(every)))
    rows = rows.drawn(settings, found.test_fraction)
    paths = [every[row] for row in rows.order.tolist()]
    decoder = Decoder(settings.image_size, settings.resampling)

    def samples(own: Rows) -> torch.Tensor:
        chosen = [paths[row] for row in own.tolist()]
        part = list(map(str, chosen)), lambda number: read_bytes(chosen[number])
        return decoder.decode_all(len(own), [part])

    dataset = rows.dataset(rows.split(settings), samples)
    decoder.tell()
    return dataset
