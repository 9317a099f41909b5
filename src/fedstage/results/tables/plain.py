"""Small tables of texts for people, a row a mapping, as Markdown and HTML."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from fedstage.results.tables import html, markdown
from fedstage.storage.files import save_text


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
