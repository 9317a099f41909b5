"""Where the files of a user's own data lie, and which are for training and for testing.

Without torch and pandas, because clients are counted while the graph is built.
"""

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeGuard

from fedstage.data.excerpts import listed, normal
from fedstage.errors import FedstageError
from fedstage.settings.data import ImageFolder
from fedstage.settings.data_sets import OfFiles, OwnSamples
from fedstage.storage.raw_files import folder_of, raw_files, visible

_LOGGER = logging.getLogger(__name__)

#: Names of folders that divide the samples, in lower case.
SPLITS = {"train": "train", "training": "train", "test": "test", "testing": "test"} | dict.fromkeys(
    ("valid", "validation", "val", "dev", "eval"), "validation"
)
#: A name that has one of them as a word, such as X_train.csv or Train_set.
_WORD = re.compile(
    r"(?:^|(?<=[^a-z]))[xy]?(train|test|holdout|valid|val|dev|eval)(?:ing|u?ate|u?ation)?"
    r"s?(?:set|data|daten|bilder)?s?(?![a-z])"
)
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")  # KDDTrain, TestImages
_SHARD = re.compile(r"(.*)-[0-9]{5}(-of-[0-9]{5})\..*")
#: Columns of Parquet files in which images are.
IMAGE_COLUMNS = ("img", "image")
#: Kinds of tables that keep files of former versions, and what shows them.
_VERSIONED = {"Delta": "_delta_log", "Hudi": ".hoodie", "Iceberg": "metadata/*.metadata.json"}
_TESTED = 0.2  # of images without folders for training and testing
_HEAD = 100  # bytes of a JSON file in which LEAF's first key is
_OF_LEAF = (b'"users"', b'"num_samples"', b'"user_data"', b'"hierarchies"')


class Found(NamedTuple):
    """Files for training and for testing, and the share of all that is to be drawn for testing."""

    train: list[Path]
    test: list[Path]
    test_fraction: float | None

    def tell(self, place: Path) -> None:
        """Say which files of a folder are not read, and which of several are not there."""
        read = {*self.train, *self.test}
        tables = [path for path in self.train if path.suffix.lower() not in ImageFolder.suffixes]
        splits = {path: _split_of(path.relative_to(place).parts) for path in tables}
        others = [path.name for path, split in splits.items() if not split]
        if others and "train" in splits.values():
            _LOGGER.warning("%s: for training are also files that are not named so: %s",
                            place, listed(others))  # fmt: skip
        away = sorted(place.rglob(".*.icloud"))
        if away:
            _LOGGER.warning("%s: %d files are in iCloud only, such as %s",
                            place, len(away), away[0].name)  # fmt: skip
        columns = {part for path in read for part in path.relative_to(place).parts[:-1]
                   if "=" in part}  # fmt: skip
        if columns:
            _LOGGER.warning("%s: folders name columns that are not read: %s",
                            place, listed(sorted(columns)))  # fmt: skip
        shards = Counter(match.expand(r"\1\2") for path in read
                         if (match := _SHARD.fullmatch(path.name)))  # fmt: skip
        for name, count in sorted(shards.items()):
            if count != (stated := int(name[-5:])):
                _LOGGER.warning("%s: %s: %d files of %d are there", place, name, count, stated)
        ignored = sorted(set(visible(place)) - read)
        counts = Counter(path.suffix or path.name for path in ignored)
        if counts:
            told = listed([f"{count} of {suffix}" for suffix, count in sorted(counts.items())])
            first = ignored[0].relative_to(place)
            _LOGGER.warning("%s: files that are not read: %s; such as %s", place, told, first)


def in_layout(settings: OfFiles) -> TypeGuard[OwnSamples]:
    """Whether a data set is of files that a user arranges; tensors have one arrangement."""
    return isinstance(settings, OwnSamples) and "files" in settings.raw


def find_files(settings: OwnSamples, folder: Path) -> Found:
    """Return the files of a data set, by name.

    Images are of the split that their outermost folder names, if all such folders name one; tables
    are of the split that a folder, or the beginning of the file's name, names. With a
    `test_fraction` of tables, or a `division` and no table for training, all are for training:
    rows are divided later.

    Raises
    ------
    FedstageError
        If the folder or the files are missing, an image is not in a folder of a class, or of a
        client and a class, or there are files for testing and a `test_fraction`.
    """
    place = folder_of(settings, folder)
    files = [path for path in raw_files(settings, folder)["files"] if is_read(path)]
    images, drawn = isinstance(settings, ImageFolder), settings.test_fraction
    pattern = "images in {}" if images else " or ".join(f"{{0}}*{end}" for end in settings.suffixes)
    if not files:
        raise FedstageError(f"{place}: has no {', no '.join(settings.suffixes)}")
    for kind, mark in _VERSIONED.items():
        if next(place.glob(mark), None):
            fault = f"a table of {kind}, with files that do not count any more"
            raise FedstageError(f"{place}: {fault}; write it out as Parquet")
    by_split: dict[str, list[Path]] = defaultdict(list)
    parts = [path.relative_to(place).parts for path in files]
    divided = images and are_splits({own[0] for own in parts})
    for path, own in zip(files, parts, strict=True):
        split = SPLITS[own[0].lower()] if divided else "" if images else _split_of(own)
        by_split[split].append(path)
    if isinstance(settings, ImageFolder):
        _check_depths(settings, place, files, divided)
    test = by_split["test"]
    if drawn is not None and test:
        hint = "leave out the fraction, or take the file away, or rename it if it is for training"
        raise FedstageError(f"data.test_fraction = {drawn:g}: {test[0]} is there; {hint}")
    if images and not divided and not settings.division:
        drawn = drawn or _TESTED
    if not divided and (drawn is not None or (settings.division and not by_split["train"])):
        return Found(files, [], drawn)
    if drawn is None:
        test = test or by_split["validation"]
    for split, paths in (("train", by_split["train"]), ("test", test)):
        if not paths and (split == "train" or not (settings.division or drawn)):
            hint = "put one there, or set data.test_fraction"
            if by_split["test"]:
                hint = f"put one there, or rename {by_split['test'][0].name} if it is for training"
            raise FedstageError(f"{place}: has no {pattern.format(split)}; {hint}")
    return Found(by_split["train"], test, drawn)


def is_read(path: Path) -> bool:
    """Whether a file with one of the suffixes is read: other JSON than LEAF's is not."""
    if path.suffix.lower() != ".json":
        return True
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise FedstageError(f"{path}: {error.strerror}") from None
    return any(key in head for key in _OF_LEAF)


def _split_of(parts: Sequence[str]) -> str:
    lower = [part.lower() for part in parts]
    named = [SPLITS[part] for part in lower[:-1] if part in SPLITS]
    words = [word for part in reversed(parts) if (word := split_word(part))]
    return next(iter((*named, *words)), "")


def split_word(name: str) -> str | None:
    """Return the split that a name has as a word, None if there is none, or several."""
    forms = (name.lower(), _HUMP.sub("_", name).lower())
    words = {SPLITS.get(word, "test") for form in forms for word in _WORD.findall(form)}  # holdout
    return words.pop() if len(words) == 1 else None


def are_splits(names: Collection[str]) -> bool:
    """Whether all names are names of splits, in upper or lower case."""
    return bool(names) and {name.lower() for name in names} <= SPLITS.keys()


def _check_depths(settings: ImageFolder, place: Path, paths: Sequence[Path], divided: bool) -> None:
    """Raise FedstageError unless each image is CLASS/FILE, or CLIENT/CLASS/FILE."""
    forms, depth = {2: "CLASS/FILE", 3: "CLIENT/CLASS/FILE"}, 3 if settings.client_folders else 2
    below = {path: path.relative_to(place).parts[divided:] for path in paths}
    splits = {path: next((one for one in parts[:-1] if one.lower() in SPLITS), None)
              or next((one for one in parts[:-2] if split_word(one)), None)
              for path, parts in below.items()}  # fmt: skip
    wrong = [path for path, parts in below.items() if len(parts) != depth]
    if wrong:
        key = f"data.client_folders = {str(depth == 2).lower()}"
        other = len(below[wrong[0]]) == 5 - depth and not any(splits.values())
        hint = f"; if it is {forms[5 - depth]}, set {key}" if other else ""
        more = f", and so must {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise FedstageError(f"{wrong[0]}: must be {forms[depth]} below {place}{more}{hint}")
    if settings.client_folders and (path := next((one for one in paths if splits[one]), None)):
        hint = f"put folders train and test into {place}, and all others into these"
        raise FedstageError(
            f"{path}: {splits[path]!r} names a split, not a client or class; {hint}"
        )


# --- clients are counted --------------------------------------------------------------------------


def count_clients(settings: OwnSamples, folder: Path) -> int:
    """Return the number of clients, which have files for training, or any with a `division`."""
    if isinstance(settings, ImageFolder):
        return len(_owners_of_images(settings, folder_of(settings, folder)))
    train, test, _ = find_files(settings, folder)
    return len(_names(settings, "client_column", train + test * bool(settings.division)))


def untested(settings: OwnSamples, folder: Path) -> list[str]:
    """Return the classes without samples for testing, where they are in files of their own."""
    train, test, _ = find_files(settings, folder)
    if not test or settings.division is not None:
        return []
    if isinstance(settings, ImageFolder):
        trained, tested = ({normal(path.parts[-2]) for path in paths} for paths in (train, test))
        return sorted(trained - tested)
    return sorted(_names(settings, "label", train) - _names(settings, "label", test))


def _names(settings: OwnSamples, key: str, paths: Sequence[Path]) -> set[str]:
    """Return the values in the column of a setting."""
    column = getattr(settings, key)
    return set().union(*(_values(path, path.stat().st_mtime_ns, key, column) for path in paths))


@lru_cache
def _values(path: Path, version: int, key: str, column: str) -> frozenset[str]:
    """Return the values in a column, read once for all runs of a grid."""
    from fedstage.data.kinds import name_column  # pyarrow, for this alone
    from fedstage.data.table_files import read_table

    table = read_table(path, {f"data.{key}": column}, texts=[column])
    names = name_column(f"data.{key}", column, (path, table)).unique()
    return frozenset(normal(name) for name in names.cast("string").to_pylist())


def _owners_of_images(settings: ImageFolder, place: Path) -> set[str]:
    """Return the folders of clients; each is searched only up to its first image.

    The number is needed for each run of a grid, and listing 100,000 files takes seconds.
    """
    found = _owners(place)
    if not are_splits(found):
        return found
    parts = [name for name in found if settings.division or SPLITS[name.lower()] == "train"]
    return set().union(*(_owners(place / part) for part in parts))


def _owners(place: Path) -> set[str]:
    folders = (path for path in place.iterdir() if path.is_dir() and path.name[0] != ".")
    return {
        normal(path.name) for path in folders
        if any(file.suffix.lower() in ImageFolder.suffixes for file in visible(path))
    }  # fmt: skip
