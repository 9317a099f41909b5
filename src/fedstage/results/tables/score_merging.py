"""Merging of scores files from several machines and days."""

from collections.abc import Sequence

from fedstage.errors import FedstageError
from fedstage.results.runs_file import SEED
from fedstage.results.tables.score_file import (
    SETTINGS,
    VALUE,
    WHAT,
    Key,
    Row,
    ScoreFile,
    differing,
    known_settings,
)


def merge(files: Sequence[ScoreFile], *, prefer_first: bool = False) -> ScoreFile:
    """Return the scores of all files, rows of the first file first.

    The same score of the same run is one row. If its values differ, `prefer_first` takes the first;
    machines of different kinds may give values that differ by rounding.

    Raises
    ------
    FedstageError
        If files have different axes, a cell has runs with different settings, or values differ.
    """
    first, *others = files
    for file in others:
        if set(file.axes) != set(first.axes):
            raise FedstageError(
                f"{file.name}: axes = {', '.join(file.axes)}: must be {', '.join(first.axes)}, as "
                f"in {first.name}"
            )
    _check_settings(files)
    united: dict[Key, tuple[ScoreFile, Row]] = {}
    for file in files:
        for row in file.rows:
            key = tuple(row[name] for name in (*first.axes, *WHAT))
            other, kept = united.setdefault(key, (file, row))
            if kept[VALUE] != row[VALUE] and not prefer_first:
                raise FedstageError(
                    f"{file.name}: {file.show(row)}, round = {row['round']}: {row['measure']} = "
                    f"{row[VALUE]}: is {kept[VALUE]} in {other.name}; --prefer first takes that"
                )
    name = ", ".join(file.name for file in files)
    return ScoreFile(name, first.axes, [row for _, row in united.values()])


def _check_settings(files: Sequence[ScoreFile]) -> None:
    """Refuse runs of one cell whose settings differ in more than their seed."""
    seen: dict[Key, tuple[ScoreFile, Row]] = {}
    axes = [axis for axis in files[0].axes if axis != SEED]
    for file in files:
        for row in file.rows:
            other, kept = seen.setdefault(tuple(row[axis] for axis in axes), (file, row))
            if kept[SETTINGS] != row[SETTINGS]:
                known = known_settings(other) | known_settings(file)
                raise FedstageError(
                    f"{file.name}: {file.show(row, seed=False)}: settings = {row[SETTINGS]}: is "
                    f"{kept[SETTINGS]} in {other.name}"
                    f"{differing(known, row[SETTINGS], kept[SETTINGS])}"
                )
