"""Small tables, a row a mapping: texts for people, exact numbers as CSV and Parquet."""

import csv
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from fedstage.results.tables import html, markdown
from fedstage.storage.files import replacing, save_text
from fedstage.storage.tables import save_table

if TYPE_CHECKING:
    from pandas import DataFrame

Cell = str | int | float | bool | None
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


class Small(NamedTuple):
    """A small table beside another: its rows, how many columns name them, and what they mean."""

    rows: Sequence[Mapping[str, str]]
    left: int
    notes: Sequence[str]


def write_markdown(
    path: Path,
    title: str,
    source: str,
    rows: Sequence[Mapping[str, str]],
    legend: Mapping[str, str],
    first: Small | None = None,
    last: Small | None = None,
) -> None:
    """Write a table of texts below a title and a sentence about its source.

    `legend` explains columns, which are aligned to the right; its other entries are left out. The
    small table `first` is above this one, and `last` below.
    """
    heads = list(rows[0])
    table = markdown.compact_grid(heads, _lines(rows), legend)
    explained = markdown.items(_explained(heads, legend))
    parts = [source, *_small(first, markdown), table, explained, *_small(last, markdown)]
    save_text(path, markdown.page(title, parts))


def _small(table: Small | None, writer: ModuleType) -> list[str]:
    """Return a small table and its notes in the format of `writer`, nothing if there is none."""
    if table is None:
        return []
    grid = writer.grid(list(table.rows[0]), _lines(table.rows), table.left)
    return [grid, writer.items(table.notes)]


def _lines(rows: Sequence[Mapping[str, str]]) -> list[list[str]]:
    return [list(row.values()) for row in rows]


def write_html(
    path: Path,
    rows: Sequence[Mapping[str, str]],
    legend: Mapping[str, str],
    *,
    title: str,
    source: str,
    left: int,
    first: Small | None = None,
    last: Small | None = None,
) -> None:
    """Write what `write_markdown` writes, the first `left` columns aligned to the left."""
    heads = list(rows[0])
    lines = [[row[head].replace("**", "") for head in heads] for row in rows]
    explained = html.items(_explained(heads, legend))
    table = [html.grid(heads, lines, left), explained]
    parts = [html.paragraph(source), *_small(first, html), *table, *_small(last, html)]
    save_text(path, html.page(title, parts))


def _explained(heads: Sequence[str], legend: Mapping[str, str]) -> list[str]:
    return [f"**{name}**: {text}" for name, text in legend.items() if name in heads]


def harmless(cell: Any) -> Any:
    """Return a cell of a CSV file, quoted by an apostrophe if a spreadsheet took it for a formula.

    That is a text which starts with = + - @ or white space, and is no number.
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
    """Write exact numbers, None as an empty cell; `columns` are by default those of the rows."""
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
