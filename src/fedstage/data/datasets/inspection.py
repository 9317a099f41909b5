"""Which data set a folder is, what a data set has, and what of it may be unintended."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from fedstage.data.datasets.images import Dataset
from fedstage.data.excerpts import alike, excerpt, have, listed, quoted
from fedstage.data.layouts import IMAGE_COLUMNS, is_read
from fedstage.data.samples import contents
from fedstage.data.table_files import read_schema
from fedstage.errors import FedstageError
from fedstage.settings.data import Data, DataOption, ImageFolder, TableData
from fedstage.settings.validation import validate
from fedstage.storage.raw_files import visible

_FEW = 10  # fewer samples of a client than this are worth a notice


def named(names: Sequence[str]) -> str:
    """Return names in one line."""
    return listed([excerpt(name) for name in names])


def client_names(data: Dataset) -> Sequence[str]:
    """Return the clients' names, or their numbers."""
    clients = data.train.clients
    count = 0 if clients is None or not len(clients) else int(clients.max()) + 1
    return data.client_names or tuple(map(str, range(count)))


def odd(data: Dataset) -> Iterator[str]:
    """Yield what a run accepts, but may be unintended."""
    names = data.class_names
    parts = (data.train, data.test, data.server_validation)
    counted = [torch.bincount(part.labels, minlength=len(names)) for part in parts]
    untested = [name for name, count in zip(names, counted[1].tolist(), strict=True) if not count]
    if untested:
        which = have(untested, f"of {len(names)} classes", f"of {len(names)} classes")
        yield f"{which} no test sample: {named(untested)}"
    if data.train.clients is not None:
        counts = torch.bincount(data.train.clients)
        few = [n for n, count in zip(client_names(data), counts, strict=True) if count < _FEW]
        if few:
            yield f"{have(few, 'client', 'clients')} fewer than {_FEW} samples: {named(few)}"
        yield from alike("clients", client_names(data))
    yield from alike("classes", names)
    total = torch.stack(counted).sum(0).tolist()
    if single := [quoted(name) for name, count in zip(names, total, strict=True) if count == 1]:
        yield f"{have(single, 'class', 'classes')} only one labelled sample: {listed(single)}"
    if data.constant:
        yield f"left out, as they are constant in the training rows: {named(data.constant)}"
    if data.train.starts is None:
        trained = {hash(content) for content in contents(data.train.images)}
        again = sum(hash(content) in trained for content in contents(data.test.images))
        if again:
            yield f"{again} of {len(data.test.labels)} test samples are also training samples"


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
    with suppress(FedstageError):  # a damaged file is left to the loader
        for path in tables:
            if path.suffix.lower() == ".parquet" and {*IMAGE_COLUMNS} & {*read_schema(path).names}:
                return "parquet"
    if tables and not (images and all(path.parent != place for path in tables)):
        return "texts" if "text" in given else "table"
    if images:
        return "image_folder"
    raise FedstageError(f"{place}: has no {', no '.join(TableData.suffixes)} and no images")


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
