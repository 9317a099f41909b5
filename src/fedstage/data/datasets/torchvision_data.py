"""CIFAR-10, CIFAR-100 and SVHN, read by torchvision, with its checksums verified.

Existing files are never overwritten: a damaged data set is an error.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from fedstage.data.datasets.downloads import download
from fedstage.data.datasets.images import Dataset, Images
from fedstage.data.datasets.splits import Rows, choose_rows, rows_by_part
from fedstage.errors import FedstageError
from fedstage.settings.data import TorchvisionData


def load(settings: TorchvisionData, folder: Path) -> Dataset:
    """Read a data set in torchvision's layout below `folder`, downloading it if it is missing.

    Raises
    ------
    FedstageError
        If a file does not match torchvision's checksum, the download fails, or there are fewer
        samples than a size.
    """
    training = ["train", "extra"] if settings.extra else ["train"]
    for part in (*training, "test"):
        get = partial(_open, settings.name, part, download=True)
        download(folder / _place(settings.name, part), get, settings.name)
    _verify(settings.name, (*training, "test"), folder)
    train = [_read(settings.name, part, folder) for part in training]
    test = [_read(settings.name, "test", folder)]
    counts = (sum(len(part.labels) for part in parts) for parts in (train, test))
    rows, every = choose_rows(settings, *counts), [*train, *test]
    return rows.dataset(partial(_take, every), train[0].names)


class _Part(NamedTuple):
    pixels: Any  #: uint8 [n, C, H, W]
    labels: Any  #: int64 [n]
    names: tuple[str, ...]


def _read(name: str, part: str, folder: Path) -> _Part:
    data = _open(name, part, folder, download=False)
    if name == "svhn":
        return _Part(data.data, data.labels, tuple(str(digit) for digit in range(10)))
    pixels = data.data.transpose(0, 3, 1, 2)
    return _Part(pixels, np.array(data.targets), tuple(data.classes))


def _take(parts: Sequence[_Part], rows: Rows) -> Images:
    """Return the samples of `rows`, which are ascending and count over all parts."""
    by_part = rows_by_part([len(part.labels) for part in parts], rows)
    chosen = [
        (part.pixels[own], part.labels[own]) for part, own in zip(parts, by_part, strict=True)
    ]
    pixels, labels = map(np.concatenate, zip(*chosen, strict=True))
    return Images(torch.from_numpy(pixels), torch.from_numpy(labels))


def _open(name: str, part: str, folder: Path, download: bool) -> Any:
    kind = _kind(name)
    if name == "svhn":
        return kind(folder, split=part, download=download)
    return kind(folder, train=part == "train", download=download)


def _kind(name: str) -> Any:
    from torchvision import datasets  # slow to import

    return {"cifar10": datasets.CIFAR10, "cifar100": datasets.CIFAR100, "svhn": datasets.SVHN}[name]


def _place(name: str, part: str) -> str:
    """Return the name of a download: CIFAR's folder, or the file of a part of SVHN."""
    kind = _kind(name)
    place: str = kind.split_list[part][1] if name == "svhn" else kind.base_folder
    return place


def _verify(name: str, parts: Sequence[str], folder: Path) -> None:
    """Check every file, to name the damaged one; torchvision's own error names none."""
    from torchvision.datasets.utils import check_integrity

    for file, md5 in _checksums(name, parts):
        path, top = folder / file, folder / Path(file).parts[0]
        if not check_integrity(path, md5):
            fault = "does not match torchvision's checksum" if path.exists() else "missing"
            raise FedstageError(f"{path}: {fault}; delete {top} to download {name} again")


def _checksums(name: str, parts: Sequence[str]) -> list[tuple[str, str]]:
    kind = _kind(name)
    if name == "svhn":
        return [(kind.split_list[part][1], kind.split_list[part][2]) for part in parts]
    meta = (kind.meta["filename"], kind.meta["md5"])
    files = [*kind.train_list, *kind.test_list, meta]
    return [(f"{kind.base_folder}/{file}", md5) for file, md5 in files]
