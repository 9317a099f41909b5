"""Tables of exact numbers, as CSV and Parquet."""

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
