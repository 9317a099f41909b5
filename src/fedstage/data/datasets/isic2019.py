"""Fed-ISIC2019 in FLamby's preprocessed layout (Ogier du Terrail et al., NeurIPS 2022).

    ISIC_2019_Training_Input_preprocessed/NAME.jpg    the shorter side has 224 pixels
    train_test_split                                  CSV: image, target, center, fold

The table is a file of FLamby's repository. The middle of each picture is used, for both training
and testing; FLamby crops, rotates and scales training pictures at random.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from fedstage.data.datasets.decoding import Decoder, Pixels
from fedstage.data.datasets.flamby import read_rows
from fedstage.data.datasets.images import Dataset, Images
from fedstage.data.datasets.splits import Rows, choose_rows
from fedstage.errors import FedstageError
from fedstage.settings.data import Isic2019
from fedstage.storage.files import read_bytes
from fedstage.storage.raw_files import place_of

CLASSES = ("MEL", "NV", "BCC", "AK", "BKL", "DF", "VASC", "SCC")
_COLUMNS = ("image", "target", "center", "fold")
_AT_ONCE = 64  # pictures decoded at a time, or all would be in memory twice


class _Picture(NamedTuple):
    path: Path
    label: int
    centre: int


def load(settings: Isic2019, folder: Path) -> Dataset:
    """Read the pictures below the data folder.

    Raises
    ------
    FedstageError
        If a file is missing or invalid, a picture is smaller than the crop, or there are fewer
        samples than a size.
    """
    table, pictures = (place_of(settings, folder, part) for part in ("table", "pictures"))
    train, test = _read_table(table, pictures.parent).values()
    rows, every = choose_rows(settings, len(train), len(test)), [*train, *test]
    return Dataset(
        train=_images(every, rows.train, settings.crop),
        test=_images(every, rows.test, settings.crop),
        held_out=_images(every, rows.held_out, settings.crop).images,
        server_validation=_images(every, rows.server_validation, settings.crop),
        class_names=CLASSES,
    )


def _read_table(path: Path, place: Path) -> dict[str, list[_Picture]]:
    """Return the pictures of each fold, from the folder `place`, in the table's order."""
    folds: dict[str, list[_Picture]] = {"train": [], "test": []}
    for line, row in read_rows(path, _COLUMNS, place.name):
        where, fold = f"{path}: line {line}", row["fold"]
        if fold not in folds:
            raise FedstageError(f"{where}: fold = {fold!r}: must be train or test")
        folds[fold].append(_picture(place, where, row))
    for fold, pictures in folds.items():
        if not pictures:
            raise FedstageError(f"{path}: fold = {fold}: no picture has it")
    return folds


def _picture(place: Path, where: str, row: dict[str, str]) -> _Picture:
    try:
        label, centre = int(row["target"]), int(row["center"])
    except (TypeError, ValueError):
        raise FedstageError(f"{where}: target and center: must be integers") from None
    if not 0 <= label < len(CLASSES):
        raise FedstageError(f"{where}: target = {label}: must be 0..{len(CLASSES) - 1}")
    return _Picture(place / f"{row['image']}.jpg", label, centre)


def _images(pictures: Sequence[_Picture], rows: Rows, crop: int) -> Images:
    chosen = [pictures[row] for row in rows.tolist()]
    pixels = np.empty((len(chosen), 3, crop, crop), np.uint8)
    with ThreadPoolExecutor() as pool:
        for start in range(0, len(chosen), _AT_ONCE):
            part = [picture.path for picture in chosen[start : start + _AT_ONCE]]
            pixels[start : start + len(part)] = list(pool.map(partial(_middle, crop), part))
    return Images(
        torch.from_numpy(pixels),
        torch.tensor([picture.label for picture in chosen], dtype=torch.int64),
        torch.tensor([picture.centre for picture in chosen], dtype=torch.int64),
    )


def _middle(crop: int, path: Path) -> Pixels:
    """Return the middle crop x crop pixels of a picture."""
    pixels = Decoder().decode_one(read_bytes(path), str(path))
    _, height, width = pixels.shape
    if min(height, width) < crop:
        raise FedstageError(
            f"{path}: {height}x{width} pixels: data.crop = {crop} needs at least {crop}x{crop}"
        )
    top, left = (height - crop) // 2, (width - crop) // 2
    return pixels[:, top : top + crop, left : left + crop]
