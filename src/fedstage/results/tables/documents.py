"""Tables of texts below a title, as Markdown and HTML."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fedstage.results.tables import html as html_writer
from fedstage.results.tables import markdown as markdown_writer
from fedstage.results.tables.columns import TextTable
from fedstage.storage.files import save_text


@dataclass(frozen=True)
class TableFiles:
    """The files of a table: exact numbers, and for people means in Markdown and HTML."""

    csv: Path
    parquet: Path
    markdown: Path
    html: Path


class Described(Protocol):
    """An experiment at a scale, by their names, and the title of its results."""

    experiment: str
    scale: str
    title: str


def write_document(
    described: Described,
    about: str,
    tables: Sequence[TextTable],
    *,
    markdown: Path,
    html: Path | None = None,
) -> None:
    """Write tables and their notes; `about` continues a sentence about the experiment's numbers."""
    title = described.title
    source = f"Experiment `{described.experiment}` at scale `{described.scale}`: {about}"
    parts = [markdown_writer.paragraph(source)]
    for table in tables:
        parts += [_grid(table), markdown_writer.items(table.notes)]
    save_text(markdown, markdown_writer.page(title, parts))
    if html is not None:
        parts = [html_writer.paragraph(source)]
        for table in tables:
            lines = [[text.replace("**", "") for text in line] for line in table.lines]
            grid = html_writer.grid(table.heads, lines, table.left)
            parts += [grid, html_writer.items(table.notes)]
        save_text(html, html_writer.page(title, parts))


def _grid(table: TextTable) -> str:
    if table.compact is None:
        return markdown_writer.grid(table.heads, table.lines, table.left)
    return markdown_writer.compact_grid(table.heads, table.lines, table.compact)
