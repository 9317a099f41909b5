"""The raw files of a data set, and digests of them, so that other data gives another result.

`OfFiles.raw` of the settings names the files, for loaders and for the plan, which lists their
digests in an input file of the jobs. These follow from names and bytes alone, so they are the same
for a copy of the data in another place or on another machine.

Reading the data at every call would take as long as using it. So digests are kept in the user's
cache, one file per data folder, each with the size and times of the file that was read. A file that
has just been written is read again: within the resolution of its times it may still change.
"""

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.plan.syntax import cache_folder
from fedstage.settings.data_sets import OfFiles
from fedstage.storage.files import load_json, save_text

_DIGITS = 16
_SETTLED = 2.0  # seconds after which a change changes a file's times, on every file system
#: The environment variable of the data folder, which the Snakefile sets from `data_folder`.
VARIABLE = "FEDSTAGE_DATA"
_LARGE = 10**9  # bytes that take long enough to read for a message

Contents = dict[str, str]
#: Size, times of the last change of content and of anything (ns), digest.
Known = dict[str, list[Any]]


def raw_contents(settings: OfFiles, folder: Path | None) -> Contents | None:
    """Return the digest of each raw file by its name below the data folder.

    None if the set names no raw files, or if no file of some part can be read: data that has been
    put away has not changed.
    """
    if folder is None:
        return None
    parts = raw_files(settings, folder)
    if not parts or not all(parts.values()):
        return None
    files = {os.path.relpath(path, folder): path for paths in parts.values() for path in paths}
    name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:_DIGITS]
    try:
        return digests(files, cache_folder() / "raw" / f"{name}.json")
    except OSError:
        return None


def check_planned(settings: OfFiles, folder: Path | None, planned: Path | None) -> None:
    """Check that raw files are the `planned` ones.

    If one changes while it is read, the next plan finds it, and the job is due again.

    Raises
    ------
    FedstageError
        If a file is another one than in the list of the plan.
    """
    contents = raw_contents(settings, folder)
    then = load_json(planned) if planned and planned.is_file() else None
    if contents and then and contents != then:
        differing = sorted(file for file, _ in contents.items() ^ then.items())
        raise FedstageError(
            f"{folder}: {differing[0]}: not as it was when the run was planned; start it again"
        )


def recorded(record: Path) -> Contents | None:
    """Return the raw files in a job's record with their digests, None if it has none.

    The record is empty if ``snakemake --touch`` has made it.
    """
    if not record.is_file() or not record.stat().st_size:
        return None
    contents: Contents | None = load_json(record).get("raw", {}).get("files")
    return contents


def digests(files: Mapping[str, Path], cache: Path) -> Contents:
    """Return the digest of each file; only files whose digest is not in `cache` are read.

    Raises
    ------
    OSError
        If a file cannot be read.
    """
    known = _load(cache)
    marks = {name: _mark(path) for name, path in files.items()}
    new = {name: mark for name, mark in marks.items() if known.get(name, [])[:-1] != mark}
    if (size := sum(mark[0] for mark in new.values())) >= _LARGE:
        text = f"reading {size / 1e9:.0f} GB of raw data, whose digests are then kept in {cache}"
        print(text, file=sys.stderr)
    read = {name: _digest(files[name]) for name in new}
    before = time.time() - _SETTLED
    kept = {name: [*mark, read[name]] for name, mark in new.items() if mark[-1] < before * 1e9}
    if kept:
        with suppress(FedstageError):  # where nothing can be kept, files are read every time
            save_text(cache, json.dumps(known | kept, indent=2))
    return {name: read.get(name) or known[name][-1] for name in files}


def _load(cache: Path) -> Known:
    """Return what is cached, nothing if the cache is damaged."""
    try:
        known = json.loads(cache.read_bytes())
    except (OSError, ValueError):
        return {}
    lists = isinstance(known, dict) and all(isinstance(entry, list) for entry in known.values())
    return known if lists else {}


def _mark(path: Path) -> list[int]:
    """Return size, mtime and ctime of a file; ctime shows a change even if mtime has been reset."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:_DIGITS]


# --- which files they are -------------------------------------------------------------------------


def default_folder() -> Path | None:
    """Return the data folder from the environment."""
    folder = os.environ.get(VARIABLE)
    return Path(folder) if folder else None


def raw_files(settings: OfFiles, folder: Path) -> dict[str, list[Path]]:
    """Return the files of each part by name, below a data folder; a part may have none.

    Raises
    ------
    FedstageError
        If a pattern names a setting that does not exist.
    """
    if not settings.in_folder:
        return {}
    # A part may belong to a setting that is left out, such as a vocabulary.
    given = [part for part, patterns in settings.raw.items() if _value(settings, patterns[0])]
    return {part: _first(settings, folder, part) for part in given}


def find_part(settings: OfFiles, folder: Path, part: str) -> list[Path]:
    """Return the files of a part by name; FedstageError if there are none."""
    if files := _first(settings, folder, part):
        return files
    place, _ = _split(settings, folder, settings.raw[part][0])
    names = " or ".join(pattern.partition("/")[2] for pattern in settings.raw[part])
    raise FedstageError(f"{place}: has no {names}")


def folder_of(settings: OfFiles, folder: Path) -> Path:
    """Return the folder of a data set that has one; FedstageError if it is not there."""
    place: Path = folder / settings.folder  # type: ignore[attr-defined]
    if not place.is_dir():
        raise FedstageError(f"{place}: no such folder; data.folder is below the data folder")
    return place


def place_of(settings: OfFiles, folder: Path, part: str) -> Path:
    """Return the path of a part that is one file, or the first pattern of one that is several."""
    place, pattern = _split(settings, folder, settings.raw[part][0])
    return place / pattern


def _first(settings: OfFiles, folder: Path, part: str) -> list[Path]:
    """Return the files of the first pattern that matches any."""
    for pattern in settings.raw[part]:
        place, below = _split(settings, folder, pattern)
        found = visible(place) if below == "**/*" else place.glob(below) if below else [place]
        suffixes = settings.suffixes if below == "**/*" else ()
        files = (path for path in found if not suffixes or path.suffix.lower() in suffixes)
        if existing := sorted(path for path in files if path.is_file()):
            return existing
    return []


def visible(place: Path) -> Iterator[Path]:
    """Yield the files at any depth below a folder; links are followed, hidden files left out.

    Raises
    ------
    FedstageError
        If a folder cannot be read.
    """

    def refuse(error: OSError) -> None:
        if isinstance(error, FileNotFoundError):
            return  # as data that has been put away
        raise FedstageError(f"{error.filename}: {error.strerror}")

    for top, folders, files in os.walk(place, onerror=refuse, followlinks=True):
        above = {os.path.realpath(path) for path in (Path(top), *Path(top).parents)}
        folders[:] = [
            name for name in folders
            if name[0] != "." and os.path.realpath(os.path.join(top, name)) not in above
        ]  # fmt: skip
        yield from (Path(top, name) for name in files if name[0] != ".")


def _split(settings: OfFiles, folder: Path, pattern: str) -> tuple[Path, str]:
    """Return the path that a pattern's setting gives, taken literally, and the pattern below it."""
    return folder / (_value(settings, pattern) or ""), pattern.partition("/")[2]


def _value(settings: OfFiles, pattern: str) -> str | None:
    key = pattern.partition("/")[0].strip("{}")
    if key not in type(settings).model_fields:
        raise FedstageError(
            f"data = {settings.name}: raw: {pattern!r}: there is no setting {key!r}; the settings "
            "class must name in `raw` the files that its loader reads"
        )
    value: str | None = getattr(settings, key)
    return value
