"""The published numbers as rows, and the papers that they are from."""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.results.cells import as_text
from fedstage.settings.base import Settings
from fedstage.settings.merging import Raw
from fedstage.settings.validation import validate

_KEYS = ("dataset", "partition_alpha", "model", "method")
HEADER = ["table", *_KEYS, "setting", "metric", "unit", "value", "std", "n_seeds"]


class Paper(Settings):
    """A paper: how tables call it, its title, and the scale of its experiments."""

    label: str
    title: str
    scale: str


@dataclass(frozen=True)
class Row:
    """A published number.

    Attributes
    ----------
    table, metric : str
        Where it stands, and what it is of.
    keys : dict
        Columns and settings that tell the rows of a table apart, as texts of `as_text`.
    value, std : float
        Mean and what follows the ± sign; fractions in percent, as accuracies are measured.
    seeds : int or None
        Runs behind the mean.
    """

    table: str
    metric: str
    keys: Mapping[str, str]
    value: float
    std: float | None
    seeds: int | None


def check_papers(raw: Raw, where: str) -> dict[str, Paper]:
    """Return the papers of a parsed ``papers.yaml``."""
    return {name: validate(Paper, paper, f"{where}: {name}") for name, paper in raw.items()}


def load_rows(path: Path) -> list[Row]:
    """Read the numbers of a paper.

    Raises
    ------
    FedstageError
        If the file is missing, or a line of it is not what the header says.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise FedstageError(f"{path}: {error.strerror}") from None
    return list(_rows(text, path))


def _rows(text: str, path: Path) -> Iterator[Row]:
    lines = csv.reader(text.splitlines(), strict=True)
    header = next(lines, [])
    if header != HEADER:
        raise FedstageError(f"{path}: columns = {','.join(header)}: must be {','.join(HEADER)}")
    for cells in lines:
        try:
            if len(cells) != len(HEADER):
                raise ValueError(f"{len(cells)} columns: must be {len(HEADER)}")
            yield _row(dict(zip(HEADER, cells, strict=True)))
        except ValueError as error:
            raise FedstageError(f"{path}: line {lines.line_num}: {error}") from None


def _row(cells: Mapping[str, str]) -> Row:
    settings = dict(_pair(pair) for pair in cells["setting"].split(";") if pair)
    columns = {key: as_text(cells[key]) for key in _KEYS if cells[key]}
    percent = 100.0 if cells["unit"] == "fraction" else 1.0
    return Row(
        table=cells["table"],
        metric=cells["metric"],
        keys=settings | columns,
        value=percent * _number(cells, "value"),
        std=percent * _number(cells, "std") if cells["std"] else None,
        seeds=int(_number(cells, "n_seeds")) if cells["n_seeds"] else None,
    )


def _number(cells: Mapping[str, str], column: str) -> float:
    try:
        return float(cells[column])
    except ValueError:
        raise ValueError(f"{column} = {cells[column]!r}: must be a number") from None


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals) or key in _KEYS:
        raise ValueError(f"setting = {text!r}: must be key=value, and no key a column")
    return key, as_text(value)
