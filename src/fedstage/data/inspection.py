"""Which data set a folder is, and what a data set has, line by line."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from fedstage.data.datasets.images import Dataset
from fedstage.data.datasets.notices import client_names, named
from fedstage.data.datasets.parquet import IMAGE_COLUMNS
from fedstage.data.excerpts import excerpt, listed
from fedstage.data.layouts import is_read
from fedstage.data.table_files import read_schema
from fedstage.errors import FedstageError
from fedstage.settings.data import Data, DataOption, ImageFolder, TableData
from fedstage.settings.validation import validate
from fedstage.storage.raw_files import visible


def settings_of(place: Path, given: Mapping[str, Any]) -> Data:
    """Return the settings of the data set in a folder, including the `given` ones.

    Raises
    ------
    FedstageError
        If the folder has neither tables nor images, or a setting is wrong.
    """
    if not place.is_dir():
        raise FedstageError(f"{place}: no such folder")
    name = given.get("name") or _kind(place, given)
    raw = {**given, "name": name, "folder": place.name}
    return validate(DataOption, {"data": raw}, str(place)).data


def _kind(place: Path, given: Mapping[str, Any]) -> str:
    """Return the name of the data set that reads the files of a folder."""
    files = [path for path in sorted(visible(place)) if is_read(path)]
    tables = [path for path in files if path.suffix.lower() in TableData.suffixes]
    images = any(path.suffix.lower() in ImageFolder.suffixes for path in files)
    if any(path.suffix.lower() == ".parquet" and _has_images(path) for path in tables):
        return "parquet"
    if tables and not (images and all(path.parent != place for path in tables)):
        return "texts" if "text" in given else "table"
    if images:
        return "image_folder"
    raise FedstageError(f"{place}: has no {', no '.join(TableData.suffixes)} and no images")


def _has_images(path: Path) -> bool:
    """Whether a file has a column of images; one that cannot be read is left to the loader."""
    try:
        return bool({*IMAGE_COLUMNS} & {*read_schema(path).names})
    except FedstageError:
        return False


def described(data: Dataset) -> Iterator[str]:
    """Yield what a data set has: samples, classes, clients and features."""
    train, shape = data.train, list(data.train.images.shape[1:])
    parts = {"for training": train.labels, "for testing": data.test.labels,
             "held out": data.held_out, "of the server": data.server_validation.labels}  # fmt: skip
    counted = [f"{len(samples)} {part}" for part, samples in parts.items() if len(samples)]
    yield f"samples: {', '.join(counted)}; each of shape {shape}"
    yield f"classes: {_counted(data.class_names, train.labels)}"
    if train.clients is not None:
        yield f"clients: {_counted(client_names(data), train.clients)}"
    if data.feature_names is not None:
        yield f"features: {len(data.feature_names)}: {named(data.feature_names)}"


def _counted(names: Sequence[str], numbers: torch.Tensor) -> str:
    """Return names, each with its number of samples."""
    counts = torch.bincount(numbers, minlength=len(names)).tolist()
    told = [f"{excerpt(name)} ({count})" for name, count in zip(names, counts, strict=True)]
    return f"{len(names)}: {listed(told)}"
