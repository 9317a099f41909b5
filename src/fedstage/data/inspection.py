"""Whether a folder of one's own is a data set, and what is in it: for ``fedstage check-data``.

The loaders read it as a run does, so what they refuse is what a run would refuse.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from fedstage.data.datasets import load
from fedstage.data.datasets.classes import check_classes
from fedstage.data.datasets.images import Dataset
from fedstage.errors import FedstageError
from fedstage.settings.data import Data, DataOption
from fedstage.settings.validation import validate

_IMAGE_COLUMNS = {"img", "image"}
_IMAGE_FILES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp"}
_SHOWN = 10  # names in a line
_FEW = 10  # fewer samples of a client than this are worth a notice


def settings_of(place: Path, given: Mapping[str, Any]) -> Data:
    """Return the settings of the data set in a folder, with those that are given.

    Raises
    ------
    FedstageError
        If the folder has neither tables nor Parquet with images, or a setting is wrong.
    """
    if not place.is_dir():
        raise FedstageError(f"{place}: no such folder")
    raw = {"name": _kind(place), "folder": place.name, **given}
    return validate(DataOption, {"data": raw}, str(place)).data


def _kind(place: Path) -> str:
    """Return the name of the data set that reads the files of a folder."""
    parquet = sorted(place.glob("*.parquet"))
    if any(place.glob("*.csv")) or parquet:
        return "parquet" if any(map(_has_images, parquet)) else "table"
    images = [path for path in place.rglob("*") if path.suffix.lower() in _IMAGE_FILES]
    if images:
        raise FedstageError(
            f"{place}: has {len(images)} files of images, such as {min(images)}: images are read "
            "from train*.parquet and test*.parquet, with columns image and label"
        )
    raise FedstageError(f"{place}: has no .csv and no .parquet")


def _has_images(path: Path) -> bool:
    """Whether a file has a column of images; one that cannot be read is left to the loader."""
    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError):
        return False
    return bool(_IMAGE_COLUMNS & set(schema.names))


def inspect_data(settings: Data, folder: Path | None) -> list[str]:
    """Return what is in a data set, a line each; what may be amiss stands last.

    Raises
    ------
    FedstageError
        If it cannot be used.
    """
    data = load(settings, folder)
    check_classes(settings.name, data)
    return [*_found(data), *(f"notice: {line}" for line in _odd(data))]


def _found(data: Dataset) -> Iterator[str]:
    train, shape = data.train, list(data.train.images.shape[1:])
    parts = {"for training": train.labels, "for testing": data.test.labels,
             "held out": data.held_out, "of the server": data.server_validation.labels}  # fmt: skip
    counted = [f"{len(samples)} {part}" for part, samples in parts.items() if len(samples)]
    yield f"samples: {', '.join(counted)}; each of shape {shape}"
    yield f"classes: {_counted(data.class_names, train.labels)}"
    if train.clients is not None:
        yield f"clients: {_counted(_client_names(data), train.clients)}"
    if data.feature_names is not None:
        yield f"features: {len(data.feature_names)}: {_listed(data.feature_names)}"


def _counted(names: Sequence[str], numbers: torch.Tensor) -> str:
    """Write names with how many samples each has."""
    counts = torch.bincount(numbers, minlength=len(names)).tolist()
    told = [f"{name} ({count})" for name, count in zip(names, counts, strict=True)]
    return f"{len(names)}: {_listed(told)}"


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join([*names[:_SHOWN], *([f"and {rest} more"] if rest > 0 else [])])


def _client_names(data: Dataset) -> Sequence[str]:
    clients = data.train.clients
    count = 0 if clients is None or not len(clients) else int(clients.max()) + 1
    return data.client_names or tuple(map(str, range(count)))


def _odd(data: Dataset) -> Iterator[str]:
    """Yield what a run takes, but may not be meant."""
    names = data.class_names
    for part, labels in (("training", data.train.labels), ("test", data.test.labels)):
        counts = torch.bincount(labels, minlength=len(names)).tolist()
        lacking = [name for name, count in zip(names, counts, strict=True) if not count]
        if lacking:
            which = f"{len(lacking)} of {len(names)} classes"
            yield f"{which} have no {part} sample: {_listed(lacking)}"
    if data.train.clients is not None:
        counts = torch.bincount(data.train.clients).tolist()
        few = [name for name, n in zip(_client_names(data), counts, strict=True) if n < _FEW]
        if few:
            yield f"{len(few)} clients have fewer than {_FEW} samples: {_listed(few)}"
        yield from _alike("clients", _client_names(data))
    yield from _alike("classes", names)
    if data.constant:
        yield f"left out, as they are constant in the training rows: {_listed(data.constant)}"


def _alike(what: str, names: Sequence[str]) -> Iterator[str]:
    """Yield names that differ in case or blanks only."""
    times = Counter(" ".join(name.split()).lower() for name in names)
    alike = [name for name in names if times[" ".join(name.split()).lower()] > 1]
    if alike:
        yield f"{what} whose names differ in case or blanks only: {', '.join(map(repr, alike))}"
