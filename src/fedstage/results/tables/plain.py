"""Small tables: texts for people as Markdown, exact numbers as CSV."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev

import pyarrow as pa

from fedstage.storage.files import replacing

NOTHING = "–"

Cell = str | int | float | bool | None


def write_markdown(
    path: Path,
    title: str,
    source: str,
    rows: Sequence[Mapping[str, str]],
    legend: Mapping[str, str],
) -> None:
    """Write a table of texts, its columns explained below.

    Parameters
    ----------
    title, source : str
        The heading, and a sentence about what the table is of.
    rows : sequence of mapping
        A text for each column; those that `legend` does not explain are set to the left.
    legend : mapping
        What the columns say, one line each.
    """
    heads = list(rows[0])
    rule = ["---:" if head in legend else ":---" for head in heads]
    lines = [heads, rule, *([_escape(row[head]) for head in heads] for row in rows)]
    table = ["| " + " | ".join(line) + " |" for line in lines]
    notes = [f"- **{name}**: {text}" for name, text in legend.items() if name in heads]
    with replacing(path) as temporary:
        text = "\n".join([f"# {title}", "", source, "", *table, "", *notes, ""])
        temporary.write_text(text, encoding="utf-8")


def write_csv(path: Path, rows: Sequence[Mapping[str, Cell]]) -> None:
    """Write exact numbers; what there is not is empty."""
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def arrow_type(values: Iterable[Cell]) -> pa.DataType:
    """Return the type of an axis; choices and mixed values are texts."""
    kinds = {type(value) for value in values if value is not None}
    for type_of, found in ((pa.bool_(), {bool}), (pa.int64(), {int}), (pa.float64(), {int, float})):
        if kinds and kinds <= found:
            return type_of
    return pa.string()


def as_columns(rows: Sequence[Mapping[str, Cell]], schema: pa.Schema) -> dict[str, list[Cell]]:
    """Return rows as columns of a schema."""

    def cell(value: Cell, kind: pa.DataType) -> Cell:
        return str(value) if kind == pa.string() and value is not None else value

    return {field.name: [cell(row[field.name], field.type) for row in rows] for field in schema}


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean, and the standard deviation (n - 1) of two values or more."""
    return mean(values), stdev(values) if len(values) > 1 else None


def with_deviation(values: Sequence[float], digits: int) -> str:
    """Write ``61.23 ± 0.45``, without the deviation for a single value."""
    middle, deviation = mean_and_deviation(values)
    return f"{middle:.{digits}f}" + (f" ± {deviation:.{digits}f}" if deviation is not None else "")


def _escape(text: str) -> str:
    return text.replace("|", "\\|")
