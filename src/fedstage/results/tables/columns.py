"""Columns of tables: exact numbers as CSV and Parquet, and the form for people."""

import csv
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fedstage.storage.files import replacing
from fedstage.storage.tables import save_table

if TYPE_CHECKING:
    from pandas import DataFrame
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from fedstage.algorithm.measures.metrics import arrow_type, spread
from fedstage.results.tables.labels import NOTHING, mean_and_std

# --- exact numbers --------------------------------------------------------------------------------

Cell = str | int | float | bool | None
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def harmless(cell: Any) -> Any:
    """Return a cell of a CSV file, quoted by an apostrophe if spreadsheets read it as a formula.

    That is a text which starts with = + - @ or white space, and is not a number.
    """
    if not isinstance(cell, str) or cell[:1] not in _FORMULA:
        return cell
    with suppress(ValueError):
        float(cell)
        return cell
    return f"'{cell}"


def write_csv(
    path: Path, rows: Sequence[Mapping[str, Cell]], columns: Sequence[str] | None = None
) -> None:
    """Write exact numbers, None as an empty cell; `columns` are by default the rows' keys."""
    columns = columns or list(rows[0])
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writerow({column: harmless(column) for column in columns})
        writer.writerows({key: harmless(cell) for key, cell in row.items()} for row in rows)


def frame_as_csv(frame: "DataFrame") -> str:
    """Return a frame as CSV, without its index."""
    texts = frame.select_dtypes(exclude=["number", "bool"])
    safe = frame.assign(**{str(name): column.map(harmless) for name, column in texts.items()})
    return safe.rename(columns=harmless).to_csv(index=False, lineterminator="\n")


def write_parquet(path: Path, rows: Sequence[Mapping[str, Cell]], schema: pa.Schema) -> None:
    """Write exact numbers in the columns of a schema; axes of mixed types become texts."""

    def cell(value: Cell, kind: pa.DataType) -> Cell:
        return str(value) if kind == pa.string() and value is not None else value

    columns = {field.name: [cell(row[field.name], field.type) for row in rows] for field in schema}
    save_table(path, columns, schema)


# --- columns --------------------------------------------------------------------------------------

Row = Mapping[str, Any]


def average(write: Callable[[float], str]) -> Callable[[Sequence[float]], str]:
    """Return a function that writes the mean of values, or `NOTHING` if there are none."""
    return lambda values: write(fmean(values)) if values else NOTHING


def with_deviation(digits: int = 2, factor: float = 1.0) -> Callable[[Sequence[float]], str]:
    """Return a function that writes values, times a factor, as ``mean ± deviation``."""

    def show(values: Sequence[float]) -> str:
        if not values:
            return NOTHING
        scaled = [factor * value for value in values]
        return mean_and_std(fmean(scaled), spread(scaled), digits).replace("-", "−")

    return show


_MEAN, _NUMBER = with_deviation(), pa.float64()


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    name : str
        Its name in files.
    head, legend : str
        What people read above it and below the table; columns without a head are only in files.
    show : callable
        Writes a cell, from the known values of its seeds.
    type : pyarrow.DataType
        Its type in files.
    """

    name: str
    head: str = ""
    legend: str = ""
    show: Callable[[Any], str] = _MEAN
    type: pa.DataType = _NUMBER


class TextTable(NamedTuple):
    """A table of texts for people.

    The first `left` columns name a line, and `notes` explain the others. In Markdown the table is
    padded, unless `compact` is given: the number of columns that are aligned to the left there.
    """

    heads: Sequence[str]
    lines: Sequence[Sequence[str]]
    left: int
    notes: Sequence[str]
    compact: int | None = None


def text_table(
    axes: Sequence[str], lines: Iterable[tuple[Sequence[str], Row]], columns: Sequence[Column]
) -> TextTable:
    """Return a table of lines, each with its values on the axes and the contents of its cells."""
    return TextTable(
        [*axes, *(column.head for column in columns)],
        [[*key, *(column.show(cells[column.name]) for column in columns)] for key, cells in lines],
        len(axes),
        [f"**{column.head}**: {column.legend}" for column in columns],
        compact=len(axes),
    )


def by_cell(rows: Iterable[Row], axes: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """Return rows by their values on axes."""
    cells: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        cells.setdefault(tuple(row[axis] for axis in axes), []).append(row)
    return cells


def known(rows: Sequence[Row], columns: Iterable[Column]) -> dict[str, list[Any]]:
    """Return the values of each column that are not None."""
    return {
        column.name: [row[column.name] for row in rows if row.get(column.name) is not None]
        for column in columns
    }


def averaged(
    rows: Sequence[Row], columns: Iterable[Column], mean: Callable[[Sequence[float]], float] = fmean
) -> dict[str, Cell]:
    """Return mean and deviation (n - 1) of each column, and the number of rows, one per seed."""
    numbers: dict[str, Cell] = {}
    for name, values in known(rows, columns).items():
        numbers |= {name: mean(values) if values else None, f"{name}_std": spread(values)}
    return numbers | {"seeds": len(rows)}


def schema_of(rows: Sequence[Mapping[str, Cell]], columns: Iterable[Column]) -> pa.Schema:
    """Return the types of rows: of these columns, and of axes according to their values."""
    types = {column.name: column.type for column in columns}
    return pa.schema(
        (name, types.get(name) or arrow_type(row[name] for row in rows)) for name in rows[0]
    )


def write_exact(
    rows: Sequence[Mapping[str, Cell]],
    columns: Iterable[Column],
    *,
    parquet: Path,
    csv: Path | None = None,
) -> None:
    """Write exact numbers to files, in the columns of the rows and the types of `schema_of`."""
    if csv is not None:
        write_csv(csv, rows)
    write_parquet(parquet, rows, schema_of(rows, columns))
