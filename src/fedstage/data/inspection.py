"""Check and describe a user's own data folder, for ``fedstage check-data``.

The loaders read it as a run does, so what they refuse is what a run would refuse.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from fedstage.data.datasets import check_classes, load
from fedstage.data.datasets.columns import kind_of
from fedstage.data.datasets.images import Dataset
from fedstage.data.excerpts import excerpt, quoted
from fedstage.data.image_files import SUFFIXES, empty_folders
from fedstage.data.table_files import read_files
from fedstage.errors import FedstageError
from fedstage.settings.data import Data, DataOption, ImageFolder, TableData
from fedstage.settings.validation import validate

_IMAGE_COLUMNS = {"img", "image"}
_SHOWN = 10  # names in a line
_FEW = 10  # fewer samples of a client than this are worth a notice
_CODES = range(3, 11)  # different integers of a column that may be codes of categories
_OFTEN = 5  # times that each of them occurs, on average
_ROWS = 10  # from this many rows on, different integers are not a coincidence
_SIMILAR = 0.8  # share of common letters from which one of two names is a typo
_MANY = 1000  # classes that are not compared with one another


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
    parquet = sorted(place.glob("*.parquet"))
    if any(map(_has_images, parquet)):
        return "parquet"
    if parquet or any(place.glob("*.csv")):
        return "texts" if "text" in given else "table"
    if any(path.suffix.lower() in SUFFIXES for path in place.rglob("*")):
        return "image_folder"
    raise FedstageError(f"{place}: has no .csv, no .parquet and no images")


def _has_images(path: Path) -> bool:
    """Whether a file has a column of images; one that cannot be read is left to the loader."""
    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError):
        return False
    return bool(_IMAGE_COLUMNS & set(schema.names))


def inspect_data(settings: Data, folder: Path | None) -> list[str]:
    """Return the contents of a data set, line by line, with possible problems last.

    Raises
    ------
    FedstageError
        If the data set cannot be used.
    """
    data = load(settings, folder)
    check_classes(settings.name, data)
    odd = [*_odd(data), *_columns(settings, folder), *_empty(settings, folder)]
    return [*_found(data), *(f"notice: {line}" for line in odd)]


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
        yield f"features: {len(data.feature_names)}: {_named(data.feature_names)}"


def _counted(names: Sequence[str], numbers: torch.Tensor) -> str:
    """Return names, each with its number of samples."""
    counts = torch.bincount(numbers, minlength=len(names)).tolist()
    told = [f"{excerpt(name)} ({count})" for name, count in zip(names, counts, strict=True)]
    return f"{len(names)}: {_listed(told)}"


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join([*names[:_SHOWN], *([f"and {rest} more"] if rest > 0 else [])])


def _named(names: Sequence[str]) -> str:
    return _listed([excerpt(name) for name in names])


def _client_names(data: Dataset) -> Sequence[str]:
    clients = data.train.clients
    count = 0 if clients is None or not len(clients) else int(clients.max()) + 1
    return data.client_names or tuple(map(str, range(count)))


def _odd(data: Dataset) -> Iterator[str]:
    """Yield what a run accepts, but may be unintended."""
    names = data.class_names
    parts = (data.train, data.test, data.server_validation)
    counted = [torch.bincount(part.labels, minlength=len(names)) for part in parts]
    for part, counts in zip(("training", "test"), counted, strict=False):
        lacking = [name for name, count in zip(names, counts.tolist(), strict=True) if not count]
        if lacking:
            have = "has" if len(lacking) == 1 else "have"
            which = f"{len(lacking)} of {len(names)} classes {have}"
            yield f"{which} no {part} sample: {_named(lacking)}"
    if data.train.clients is not None:
        counts = torch.bincount(data.train.clients)
        few = [n for n, count in zip(_client_names(data), counts, strict=True) if count < _FEW]
        if few:
            have = "1 client has" if len(few) == 1 else f"{len(few)} clients have"
            yield f"{have} fewer than {_FEW} samples: {_named(few)}"
        yield from _alike("clients", _client_names(data))
    yield from _alike("classes", names)
    yield from _single(names, torch.stack(counted).sum(0).tolist())
    if data.constant:
        yield f"left out, as they are constant in the training rows: {_named(data.constant)}"


def _plain(name: str) -> str:
    return " ".join(name.split()).lower()


def _alike(what: str, names: Sequence[str]) -> Iterator[str]:
    """Yield names that differ only in case or spaces."""
    times = Counter(map(_plain, names))
    alike = [name for name in names if times[_plain(name)] > 1]
    if alike:
        listed = _listed([quoted(name) for name in alike])
        yield f"{what} whose names differ only in case or spaces: {listed}"


def _single(names: Sequence[str], counts: Sequence[int]) -> Iterator[str]:
    """Yield classes of a single labelled sample, first the ones spelled nearly like others."""
    single = [name for name, count in zip(names, counts, strict=True) if count == 1]
    typos = {name: near for name in single if (near := _similar(name, names))}
    for name, near in typos.items():
        yield (
            f"class {quoted(name)} has only one labelled sample, and is similar to {quoted(near)}; "
            "a typo?"
        )
    others = [name for name in single if name not in typos]
    if others:
        have = "1 class has" if len(others) == 1 else f"{len(others)} classes have"
        yield f"{have} only one labelled sample: {_listed([quoted(name) for name in others])}"


def _similar(name: str, names: Sequence[str]) -> str | None:
    """Return another name that is spelled nearly like this one, numbers aside."""
    if len(names) > _MANY:
        return None
    others = [other for other in names if _letters(other) != _letters(name)]
    return next(iter(get_close_matches(name, others, n=1, cutoff=_SIMILAR)), None)


def _letters(name: str) -> str:
    """Return a name for comparison, regardless of numbers, case and spaces."""
    return re.sub(r"\d+", "0", _plain(name))


def _columns(settings: Data, folder: Path | None) -> Iterator[str]:
    """Yield columns of features whose integers may be something other than quantities."""
    if not isinstance(settings, TableData) or folder is None:
        return
    tables = [table for _, table in read_files(settings, folder)[0]]
    table = pa.concat_tables(tables, promote_options="permissive")
    none = {settings.label, settings.client_column, *settings.drop, *settings.categorical}
    for name in settings.features or table.column_names:
        kind = kind_of(table.column(name).type) if name not in none else None
        values = table.column(name).unique().to_pylist() if kind in ("integer", "number") else []
        known = [value for value in values if value is not None]
        if all(float(value).is_integer() for value in known):
            yield from _integers(name, known, table.num_rows)


def _integers(name: str, different: Sequence[float], rows: int) -> Iterator[str]:
    """Yield what the integers of a column may be: codes of categories, or names of the rows."""
    count = len(different)
    if count in _CODES and rows >= _OFTEN * count:
        yield (
            f"column {quoted(name)} has {count} different integers: if they are codes of "
            "categories, name it in data.categorical"
        )
    if count == rows >= _ROWS:
        first, last = int(min(different)), int(max(different))
        consecutive = last - first == rows - 1
        what = "consecutive integers" if consecutive else "a different integer in each row"
        yield (
            f"column {quoted(name)} has {what}, {first} to {last}: if it "
            f"{'numbers' if consecutive else 'identifies'} the rows, leave it out with data.drop"
        )


def _empty(settings: Data, folder: Path | None) -> Iterator[str]:
    """Yield the folders without images in a folder of images."""
    if not isinstance(settings, ImageFolder) or folder is None:
        return
    empty = empty_folders(settings, folder)
    if empty:
        have = "1 folder has" if len(empty) == 1 else f"{len(empty)} folders have"
        yield f"{have} no images: {_named(empty)}"
