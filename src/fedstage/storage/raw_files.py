"""The raw files of a data set, found in the same way by loaders and by the rule `dataset`.

`DataSet.raw` of the settings names them. Their content determines the data set, see
`fedstage.storage.raw_contents`. Standard library only, because the Snakefile imports it.
"""

from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.settings.data_sets import DataSet


def raw_files(settings: DataSet, folder: Path) -> dict[str, list[Path]]:
    """Return the files of each part by name, below a data folder; a part may have none.

    Raises
    ------
    FedstageError
        If a pattern names a setting that does not exist.
    """
    return {part: _first(settings, folder, part) for part in _parts(settings)}


def find_part(settings: DataSet, folder: Path, part: str) -> list[Path]:
    """Return the files of a part by name; FedstageError if there are none."""
    if files := _first(settings, folder, part):
        return files
    place, _ = _split(settings, folder, settings.raw[part][0])
    names = " or ".join(pattern.partition("/")[2] for pattern in settings.raw[part])
    raise FedstageError(f"{place}: has no {names}")


def folder_of(settings: DataSet, folder: Path) -> Path:
    """Return the folder of a data set that has one; FedstageError if it is not there."""
    place: Path = folder / settings.folder  # type: ignore[attr-defined]
    if not place.is_dir():
        raise FedstageError(f"{place}: no such folder; data.folder is below the data folder")
    return place


def place_of(settings: DataSet, folder: Path, part: str) -> Path:
    """Return the path of a part that is one file, or the first pattern of one that is several."""
    place, pattern = _split(settings, folder, settings.raw[part][0])
    return place / pattern


def _parts(settings: DataSet) -> list[str]:
    """Return the parts without those whose setting is left out, such as a vocabulary."""
    if not settings.in_folder:
        return []
    return [part for part, patterns in settings.raw.items() if _value(settings, patterns[0])]


def _first(settings: DataSet, folder: Path, part: str) -> list[Path]:
    """Return the files of the first pattern that matches any."""
    for pattern in settings.raw[part]:
        place, below = _split(settings, folder, pattern)
        found = place.glob(below) if below else [place]
        if files := sorted(path for path in found if path.is_file()):
            return files
    return []


def _split(settings: DataSet, folder: Path, pattern: str) -> tuple[Path, str]:
    """Return the path that a pattern's setting gives, taken literally, and the pattern below it."""
    return folder / (_value(settings, pattern) or ""), pattern.partition("/")[2]


def _value(settings: DataSet, pattern: str) -> str | None:
    key = pattern.partition("/")[0].strip("{}")
    if key not in type(settings).model_fields:
        raise FedstageError(
            f"data = {settings.name}: raw: {pattern!r}: there is no setting {key!r}; the settings "
            "class must name in `raw` the files that its loader reads"
        )
    value: str | None = getattr(settings, key)
    return value
