"""Published numbers as rows, and their papers."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.results.cells import as_text
from fedstage.settings.base import Settings
from fedstage.settings.validation import validate
from fedstage.storage.files import read_bytes
from fedstage.storage.yaml_files import load_yaml

_KEYS = ("dataset", "partition_alpha", "model", "method")
HEADER = ["table", *_KEYS, "setting", "metric", "unit", "value", "std", "n_seeds"]


class Paper(Settings):
    """A paper: its short name in tables, its title, and the scale of its experiments.

    A `remark` qualifies what was measured here, where the page of results shows the paper's claims.
    """

    label: str
    title: str
    scale: str
    remark: str | None = None


@dataclass(frozen=True)
class Row:
    """A published number; fractions are in percent, as accuracies are measured."""

    table: str
    metric: str
    keys: Mapping[str, str]  # columns and settings of the row, as texts of `as_text`
    value: float  # the mean
    std: float | None  # the number after the ± sign
    seeds: int | None  # number of runs behind the mean


def load_papers(folder: Path) -> dict[str, Paper]:
    """Return the papers of a folder, by the names of their own folders."""
    files = sorted(folder.glob("*/paper.yaml"))
    return {path.parent.name: validate(Paper, load_yaml(path), str(path)) for path in files}


def load_rows(folder: Path) -> list[Row]:
    """Read the numbers of a paper, `numbers.csv` in its folder.

    Raises
    ------
    FedstageError
        If the file is missing, or a line does not fit the header.
    """
    path = folder / "numbers.csv"
    lines = csv.reader(read_bytes(path).decode().splitlines(), strict=True)
    header = next(lines, [])
    if header != HEADER:
        raise FedstageError(f"{path}: columns = {','.join(header)}: must be {','.join(HEADER)}")
    rows = []
    for cells in lines:
        try:
            if len(cells) != len(HEADER):
                raise ValueError(f"{len(cells)} columns: must be {len(HEADER)}")
            rows.append(_row(dict(zip(HEADER, cells, strict=True))))
        except ValueError as error:
            raise FedstageError(f"{path}: line {lines.line_num}: {error}") from None
    return rows


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
