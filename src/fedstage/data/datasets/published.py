"""Published data sets of images, and what is common to published data sets.

CIFAR-10, CIFAR-100 and SVHN are read by torchvision. The handwritten digits are part of
scikit-learn: a data set without a download. Existing files are never overwritten: a damaged data
set is an error.
"""

import csv
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from http.client import HTTPException
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fedstage.data.datasets.images import Dataset, Images
from fedstage.data.datasets.splits import (
    Rows,
    Split,
    check_size,
    choose_rows,
    permutation,
    rows_by_part,
)
from fedstage.data.excerpts import listed
from fedstage.errors import FedstageError
from fedstage.settings.data import Digits, TorchvisionData

if TYPE_CHECKING:
    from pandas import DataFrame

_HIGHEST = 16  # scikit-learn's grey levels are 0..16
_MD5 = 32  # digits; other checksums are SHA-256


def load(settings: Digits | TorchvisionData, folder: Path) -> Dataset:
    """Read a data set, downloading it into the folder if it is missing.

    Raises
    ------
    FedstageError
        If a file does not match its checksum, the download fails, or there are fewer samples than a
        size.
    """
    return _digits(settings) if isinstance(settings, Digits) else _torchvision(settings, folder)


def _digits(settings: Digits) -> Dataset:
    """Read the digits: 1,797 images [1, 8, 8], grey levels 0..16 scaled to 0..255 and rounded.

    A fixed permutation is cut into `test`, `held_out`, `server_validation` and the training set.
    """
    package = find_spec("sklearn")  # not imported, which takes 2 s
    path = Path(str(package and package.origin)).parent / "datasets/data/digits.csv.gz"
    read = np.loadtxt(path, delimiter=",")  # 64 grey levels, and the digit
    grey = read[:, :-1].reshape(-1, 1, 8, 8)
    images = torch.from_numpy(np.rint(grey * (255 / _HIGHEST)).astype(np.uint8))
    labels = torch.from_numpy(read[:, -1].astype(np.int64))
    sizes = {key: getattr(settings, key) for key in ("test", "held_out", "server_validation")}
    taken, left = "", len(labels)
    for key, size in sizes.items():
        check_size(key, size, left - 1, f"{len(labels)} images{taken}, one must stay for training")
        taken, left = f"{taken}, {key} = {size}", left - size
    order = permutation(settings.split_seed, "split", len(labels))
    *cut, train = np.split(order, list(accumulate(sizes.values())))
    rows = Split(train=train, **dict(zip(sizes, cut, strict=True)))
    return rows.dataset(lambda own: Images(images[own], labels[own]), tuple("0123456789"))


def _torchvision(settings: TorchvisionData, folder: Path) -> Dataset:
    from torchvision import datasets  # slow to import

    name, svhn = settings.name, settings.name == "svhn"
    kind: Any = getattr(datasets, name.upper())
    pixels: list[Any] = []
    labels: list[Any] = []
    chosen: dict[str, Any]
    for part in ("train", *["extra"] * settings.extra, "test"):
        if svhn:
            place, checksum = kind.split_list[part][1:3]
            files, chosen = {place: checksum}, {"split": part}
        else:
            every = [*kind.train_list, *kind.test_list, (kind.meta["filename"], kind.meta["md5"])]
            place, chosen = kind.base_folder, {"train": part == "train"}
            files = {f"{place}/{file}": checksum for file, checksum in every}
        fetch(folder / place, partial(kind, **chosen, download=True), name, files)
        data = kind(folder, **chosen)
        pixels.append(data.data if svhn else data.data.transpose(0, 3, 1, 2))
        labels.append(np.array(data.labels if svhn else data.targets))
    names = tuple("0123456789") if svhn else tuple(data.classes)
    counts = [len(own) for own in labels]

    def samples(own: Rows) -> Images:
        by_part = list(rows_by_part(counts, own))
        images, classes = (
            np.concatenate([part[rows] for part, rows in zip(parts, by_part, strict=True)])
            for parts in (pixels, labels)
        )
        return Images(torch.from_numpy(images), torch.from_numpy(classes))

    return choose_rows(settings, sum(counts[:-1]), counts[-1]).dataset(samples, names)


# --- files of published data sets -----------------------------------------------------------------


def fetch(place: Path, get: Callable[[Path], Any], what: str, checksums: Mapping[str, str]) -> None:
    """Download a file or folder, unless it is there, and verify its files.

    `get` puts it into a temporary folder, whence it is renamed, so that two jobs may do so at once
    and all files exist or none. `checksums` are MD5 or SHA-256 by the file's path next to `place`.

    Raises
    ------
    FedstageError
        If the download fails, or a file is missing or altered.
    """
    if not place.exists():
        try:
            with TemporaryDirectory(dir=place.parent, prefix=f".{place.name}-") as temporary:
                get(Path(temporary))
                os.rename(Path(temporary, place.name), place)
        except (OSError, RuntimeError, HTTPException) as error:
            if not place.exists():  # otherwise, another job was faster
                fault = f"downloading {what} into {place.parent} failed ({error})"
                hint = "allow the download or put the official files there"
                raise FedstageError(f"{place}: not there, and {fault}; {hint}") from None
    for name, checksum in checksums.items():
        path = place.parent / name
        digest = hashlib.md5 if len(checksum) == _MD5 else hashlib.sha256
        if not path.is_file() or digest(path.read_bytes()).hexdigest() != checksum:
            fault = "does not have the official checksum" if path.is_file() else "missing"
            raise FedstageError(f"{path}: {fault}; delete {place} to download {what} again")


def read_columns(
    path: Path, allowed: Mapping[str, Sequence[str]], hint: str = "", *,
    header: bool = True, encoding: str = "utf-8",
) -> "DataFrame":  # fmt: skip
    """Return the columns of a published CSV file as texts; without a header, `allowed` names all.

    Raises
    ------
    FedstageError
        If the file or a column is missing, or a value is not among the allowed ones, if any.
    """
    import pandas as pd  # slow to import

    try:
        if not header:  # pandas would fill up rows that are too short
            with path.open(encoding=encoding, newline="") as file:
                for row, cells in enumerate(csv.reader(file), 1):
                    if len(cells) != len(allowed):
                        raise FedstageError(f"{path}: line {row}: must have {', '.join(allowed)}")
        names = None if header else [*allowed]
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding=encoding, names=names)
    except (OSError, ValueError, csv.Error) as error:
        detail = error.strerror if isinstance(error, OSError) else str(error).strip()
        raise FedstageError(f"{path}: {detail}{hint}") from None
    if table.empty:
        raise FedstageError(f"{path}: has no rows")
    for name, values in allowed.items():
        if name not in table:
            raise FedstageError(f"{path}: has no column {name!r}")
        wrong = ~table[name].isin(values) & bool(values)
        if wrong.any():
            line, value = wrong.argmax() + 1 + header, table[name][wrong.argmax()]
            must = f"must be one of {listed(values)}"
            raise FedstageError(f"{path}: line {line}: {name} = {value!r}: {must}")
    return table
