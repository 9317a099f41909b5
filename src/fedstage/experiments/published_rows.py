"""A paper's numbers as rows, and the row of each cell of an experiment's table."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.experiments.grid import check_known
from fedstage.settings.base import Settings
from fedstage.settings.cells import as_text, names_of, show_point
from fedstage.settings.scores import Axis, Columns, Published
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


# --- the row of a cell ----------------------------------------------------------------------------

#: The published column of an axis, unless an experiment names another.
STANDARD = {
    "method": "method",
    "model": "model",
    "data": "dataset",
    "partition.alpha": "partition_alpha",
}

Point = Mapping[str, Axis]
SEED = "seed"


def counterparts(
    where: str,
    published: Published,
    points: Sequence[Point],
    rows: Sequence[Row],
    known: Sequence[Mapping[str, str]] = (),
) -> list[Row | None]:
    """Return the published row of each run, None where the paper has none.

    `points` are the axes of each run, where the seed does not matter, and `known` are columns that
    choose among several rows. `rows` are all numbers of the paper, and `where` begins messages.

    Raises
    ------
    FedstageError
        If a run names several rows, or the table is unknown.
    """
    where = f"{where}.published"
    table = _table(where, published, rows)
    return [
        _counterpart(where, published, table, without_seed(point), of)
        for point, of in zip(points, known or [{}] * len(points), strict=True)
    ]


def without_seed(point: Point) -> dict[str, Axis]:
    """Return the values of a run on all axes but the seed, which identify its cell."""
    return {axis: value for axis, value in point.items() if axis != SEED}


def _counterpart(
    where: str,
    published: Published,
    table: Sequence[Row],
    cell: Point,
    known: Mapping[str, str],
) -> Row | None:
    columns = describe_cell(published, cell)
    if columns is None:
        return None
    found = [row for row in table if columns.items() <= row.keys.items()]
    if len(found) > 1:
        shared = [(key, known[key]) for key in known.keys() - columns]
        found = [row for row in found if all(row.keys.get(key, of) == of for key, of in shared)]
    if len(found) < 2:
        return found[0] if found else None
    keys = dict.fromkeys(key for row in found for key in row.keys)
    differing = [key for key in keys if len({row.keys.get(key) for row in found}) > 1]
    raise FedstageError(
        f"{where}: {show_point(cell)}: {len(found)} rows of {published.paper}, "
        f"{published.table}, have {show_point(columns)}; name one by {' or '.join(differing)}"
    )


def describe_cell(published: Published, point: Point) -> dict[str, str] | None:
    """Return the columns of a cell's published row; None for a cell without one."""
    parts = [_of_axis(published, axis, value) for axis, value in point.items()]
    columns: Columns = dict(published.where)
    for part in parts:
        columns |= part or {}
    return None if None in parts else {key: as_text(value) for key, value in columns.items()}


def _of_axis(published: Published, axis: str, value: Axis) -> Columns | None:
    """Return the columns of the published table that stand for a value of an axis; None if none."""
    names = names_of(axis, value)
    by_value = {as_text(key): part for key, part in published.match.get(axis, {}).items()}
    for name in names:
        if name in by_value:
            return by_value[name]
    column = published.axes.get(axis, STANDARD.get(axis))
    if column is not None:
        return {column: names[-1]}
    return None if by_value else {}


def _table(where: str, published: Published, rows: Sequence[Row]) -> list[Row]:
    check_known(f"{where}.table", published.table, dict.fromkeys(row.table for row in rows))
    found = [row for row in rows if row.table == published.table]
    check_known(f"{where}.metric", published.metric, dict.fromkeys(row.metric for row in found))
    return [row for row in found if row.metric == published.metric]
