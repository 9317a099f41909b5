"""CIFAR-10, CIFAR-100 and SVHN as torchvision reads them, its checksums verified.

Files that are there are never overwritten: a missing data set is downloaded beside its place and
renamed, so that two jobs may do it at once; a damaged one is an error.
"""

import os
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from fedstage.config import TorchvisionData
from fedstage.data.images import Dataset, Images
from fedstage.data.splits import Rows, choose_rows
from fedstage.errors import FedstageError

_SVHN = {True: "train", False: "test"}


def load_torchvision(settings: TorchvisionData, folder: Path) -> Dataset:
    """Read a data set in torchvision's layout below `folder`, downloading it if it is not there.

    Raises
    ------
    FedstageError
        If a file does not match torchvision's checksum, the download fails, or a size asks for
        more samples than there are.
    """
    for train in (True, False):
        if not (folder / _place(settings.name, train)).exists():
            _download(settings.name, train, folder)
    _verify(settings.name, folder)
    train_images, train_labels, names = _read(settings.name, True, folder)
    test_images, test_labels, _ = _read(settings.name, False, folder)
    rows = choose_rows(settings, len(train_labels), len(test_labels))
    return Dataset(
        train=Images(_take(train_images, rows.train), _take(train_labels, rows.train)),
        test=Images(_take(test_images, rows.test), _take(test_labels, rows.test)),
        held_out=_take(train_images, rows.held_out),
        server_validation=Images(
            _take(train_images, rows.server_validation),
            _take(train_labels, rows.server_validation),
        ),
        class_names=names,
    )


def _read(name: str, train: bool, folder: Path) -> tuple[Any, Any, tuple[str, ...]]:
    """Return pixels uint8 [n, C, H, W], labels int64 [n] and the names of the classes."""
    data = _open(name, train, folder, download=False)
    if name == "svhn":
        return data.data, data.labels, tuple(str(digit) for digit in range(10))
    return data.data.transpose(0, 3, 1, 2), np.array(data.targets), tuple(data.classes)


def _take(array: Any, rows: Rows) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array[rows]))


def _open(name: str, train: bool, folder: str | Path, download: bool) -> Any:
    kind = _kind(name)
    if name == "svhn":
        return kind(folder, split=_SVHN[train], download=download)
    return kind(folder, train=train, download=download)


def _kind(name: str) -> Any:
    from torchvision import datasets  # slow to import

    return {"cifar10": datasets.CIFAR10, "cifar100": datasets.CIFAR100, "svhn": datasets.SVHN}[name]


def _place(name: str, train: bool) -> str:
    """Name the folder (CIFAR: of both parts) or file (SVHN: of one) that a download makes."""
    kind = _kind(name)
    place: str = kind.split_list[_SVHN[train]][1] if name == "svhn" else kind.base_folder
    return place


def _download(name: str, train: bool, folder: Path) -> None:
    place = _place(name, train)
    try:
        with TemporaryDirectory(dir=folder, prefix=f".{name}-") as temporary:
            _open(name, train, temporary, download=True)
            os.rename(Path(temporary) / place, folder / place)
    except (OSError, RuntimeError, HTTPException) as error:
        if (folder / place).exists():  # another job was faster; what it made is verified as well
            return
        raise FedstageError(
            f"{folder / place}: not there, and downloading {name} into {folder} failed "
            f"({error}); allow the download or put the official files there"
        ) from None


def _verify(name: str, folder: Path) -> None:
    """Check every file, to name the one at fault; torchvision's own error names none."""
    from torchvision.datasets.utils import check_integrity

    for file, md5 in _checksums(name):
        if not check_integrity(folder / file, md5):
            fault = (
                "does not match torchvision's checksum" if (folder / file).exists() else "missing"
            )
            top = folder / Path(file).parts[0]
            raise FedstageError(f"{folder / file}: {fault}; delete {top} to download {name} again")


def _checksums(name: str) -> list[tuple[str, str]]:
    kind = _kind(name)
    if name == "svhn":
        return [(kind.split_list[split][1], kind.split_list[split][2]) for split in _SVHN.values()]
    meta = (kind.meta["filename"], kind.meta["md5"])
    files = [*kind.train_list, *kind.test_list, meta]
    return [(f"{kind.base_folder}/{file}", md5) for file, md5 in files]
