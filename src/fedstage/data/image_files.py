"""Images in folders named after classes: finding them, with the class and client of each.

Standard library only, because clients are counted while the graph is built.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from fedstage.errors import FedstageError
from fedstage.settings.data import ImageFolder
from fedstage.storage.raw_files import folder_of, raw_files

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm"})
_PARTS = ("train", "test")
_TESTED = 0.2  # of images without folders for training and testing


class Picture(NamedTuple):
    """An image file, and the names of its class and, with folders of clients, its client."""

    path: Path
    label: str
    client: str


class Pictures(NamedTuple):
    """The images for training and for testing, and the share that is to be drawn for testing."""

    train: list[Picture]
    test: list[Picture]
    test_fraction: float | None


def find_images(settings: ImageFolder, folder: Path) -> Pictures:
    """Return the images below the data folder, by name; hidden files and folders are ignored.

    Raises
    ------
    FedstageError
        If there are none, or one is not in a folder of a class, or of a client and a class; or if
        folders `train` and `test` conflict with the share for testing.
    """
    place = folder_of(settings, folder)
    found = _below(settings, folder, place)
    if not found:
        raise FedstageError(f"{place}: has no images ({', '.join(sorted(SUFFIXES))})")
    if not {parts[0] for _, parts in found} <= {*_PARTS}:
        every = [_picture(settings, place, path, parts) for path, parts in found]
        drawn = None if settings.division else settings.test_fraction or _TESTED
        return Pictures(every, [], drawn)
    train, test = (
        [_picture(settings, place / part, path, below) for path, (top, *below) in found
         if top == part] for part in _PARTS
    )  # fmt: skip
    _check(settings, place, train, test)
    return Pictures(train, test, settings.test_fraction)


def empty_folders(settings: ImageFolder, folder: Path) -> list[str]:
    """Return the outermost folders without images, by their paths."""
    place = folder_of(settings, folder)
    return sorted(path.relative_to(place).as_posix() for path in _without_images(place))


def _without_images(place: Path) -> Iterator[Path]:
    for entry in filter(_is_folder, _visible(place)):
        if _has_image(entry):
            yield from _without_images(Path(entry.path))
        else:
            yield Path(entry.path)


def _below(settings: ImageFolder, folder: Path, place: Path) -> list[tuple[Path, Sequence[str]]]:
    """Return the files of images, each with the parts of its path below a folder."""
    depth = len(place.parts)
    found = ((path, path.parts[depth:]) for path in raw_files(settings, folder)["files"])
    return [
        (path, parts)
        for path, parts in found
        if path.suffix.lower() in SUFFIXES and not any(part.startswith(".") for part in parts)
    ]


def _picture(settings: ImageFolder, place: Path, path: Path, parts: Sequence[str]) -> Picture:
    """Return an image at CLASS/FILE, or CLIENT/CLASS/FILE, below a folder."""
    expected, other = ("CLASS/FILE", "true"), ("CLIENT/CLASS/FILE", "false")
    if settings.client_folders:
        expected, other = other, expected
    if len(parts) != expected[0].count("/") + 1:
        hint = ""
        if len(parts) == other[0].count("/") + 1:
            hint = f"; if it is {other[0]}, set data.client_folders = {expected[1]}"
        raise FedstageError(f"{path}: must be {expected[0]} below {place}{hint}")
    return Picture(path, parts[-2], parts[0])


def _check(settings: ImageFolder, place: Path, train: list[Picture], test: list[Picture]) -> None:
    """Raise FedstageError unless there are images for training and, in one way, for testing."""
    if not train:
        raise FedstageError(f"{place}: has no images in train")
    if settings.test_fraction is not None and test:
        raise FedstageError(
            f"data.test_fraction = {settings.test_fraction:g}: {place / 'test'} has images; leave "
            "out the fraction, or take the folder away"
        )
    if not test and settings.test_fraction is None and settings.division is None:
        raise FedstageError(
            f"{place}: has no images in test; put some there, or set data.test_fraction"
        )


# --- clients are counted --------------------------------------------------------------------------


def count_clients(settings: ImageFolder, folder: Path) -> int:
    """Return the number of folders of clients with images that these may train on.

    A folder is searched only up to its first image: the number is needed for each run of a grid,
    and listing 100,000 files takes seconds.
    """
    place = folder_of(settings, folder)
    found = _owners(place)
    if found and found <= {*_PARTS}:
        parts = _PARTS if settings.division is not None else ("train",)
        return len(set().union(*(_owners(place / part) for part in parts)))
    return len(found)


def _owners(place: Path) -> set[str]:
    """Return the names of the folders with images at any depth; none if `place` is missing."""
    if not place.is_dir():
        return set()
    return {entry.name for entry in _visible(place) if _is_folder(entry) and _has_image(entry)}


def _has_image(folder: os.DirEntry[str]) -> bool:
    return any(
        _has_image(entry) if _is_folder(entry) else Path(entry.name).suffix.lower() in SUFFIXES
        for entry in _visible(folder.path)
    )


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)  # as in patterns of raw files


def _visible(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        yield from (entry for entry in entries if not entry.name.startswith("."))
