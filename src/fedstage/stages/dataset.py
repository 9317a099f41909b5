"""Stage `dataset`: read a data set into arrays, once for all lines that use it."""

import json
from pathlib import Path
from typing import Any

import torch

from fedstage.data.datasets import Dataset, Images, load
from fedstage.data.datasets.images import pixel_statistics
from fedstage.data.folder import default_folder
from fedstage.errors import FedstageError
from fedstage.settings.base import Settings
from fedstage.settings.data import Data
from fedstage.settings.validation import validate
from fedstage.storage.files import save_json
from fedstage.storage.tensors import save_tensors


class _Option(Settings):
    """What the option says, under its configuration key for the sake of messages."""

    data: Data


def dataset(
    *,
    settings: str,
    folder: Path | None = None,
    train: Path,
    test: Path,
    held_out: Path,
    server_validation: Path | None = None,
    test_own: Path | None = None,
    info: Path,
) -> None:
    """Write the training, test and held-out arrays of a data set, and what is known of it.

    Parameters
    ----------
    settings : str
        The data set's settings (`data` of a line) as JSON.
    folder : Path, optional
        The data folder; by default that of the environment variable FEDSTAGE_DATA.
    train, test : Path
        Outputs: `images` uint8 [n, C, H, W], or samples of another kind as
        `fedstage.data.datasets.images.Images` says; `labels` int64 [n] and, where the data set has them,
        `clients` int64 [n].
    held_out : Path
        Output: `images` uint8 [m, C, H, W].
    server_validation : Path, optional
        Output: as `test`.
    test_own : Path, optional
        Output: as `test`, prepared as each client would its own; empty where that is no other.
    info : Path
        Output: name, number and names of classes, shape of a sample (of images [C, H, W]), mean and
        standard deviation [C] of the training pixels scaled to 0..1 (empty where samples are no
        images), and the number of samples of each part.

    Raises
    ------
    FedstageError
        If the settings are invalid, or the data is missing, damaged or too little.
    """
    chosen = _parse(settings)
    loaded = load(chosen, folder or default_folder())
    save_tensors(train, _tensors(loaded.train))
    save_tensors(test, _tensors(loaded.test))
    save_tensors(held_out, {"images": loaded.held_out})
    if server_validation is not None:
        save_tensors(server_validation, _tensors(loaded.server_validation))
    if test_own is not None:
        save_tensors(test_own, _tensors(loaded.test_own or loaded.test.none))
    save_json(info, describe(chosen.name, loaded))


def describe(name: str, data: Dataset) -> dict[str, Any]:
    """Describe a data set as the stage's `info` does."""
    pixels = data.train.images.dtype == torch.uint8
    mean, deviation = pixel_statistics(data.train.images) if pixels else ([], [])
    return {
        "name": name,
        "classes": len(data.class_names),
        "class_names": list(data.class_names),
        "shape": list(data.train.images.shape[1:]),
        "mean": mean,
        "std": deviation,
        "train": len(data.train.labels),
        "test": len(data.test.labels),
        "held_out": len(data.held_out),
        "server_validation": len(data.server_validation.labels),
    }


def _parse(settings: str) -> Data:
    try:
        raw = json.loads(settings)
    except ValueError as error:
        raise FedstageError(f"--settings {settings!r}: must be JSON ({error})") from None
    return validate(_Option, {"data": raw}, "--settings").data


def _tensors(part: Images) -> dict[str, torch.Tensor]:
    tensors = {"images": part.images, "labels": part.labels}
    known = {"clients": part.clients, "starts": part.starts}
    return tensors | {name: value for name, value in known.items() if value is not None}
