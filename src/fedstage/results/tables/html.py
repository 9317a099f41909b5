"""Documents in HTML, for the report: pages, tables and lists."""

import re
from collections.abc import Callable, Sequence
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedstage.results.tables.layout import Layout, Mark, TextColumn

_STYLE = """
body { font: 15px/1.5 sans-serif; margin: 2em; color: #222; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { padding: 0.35em 0.9em; text-align: right; border-bottom: 1px solid #ddd; }
th { border-bottom: 2px solid #444; }
th[colspan] { text-align: center; border-bottom: 1px solid #444; }
.key { text-align: left; }
li { color: #555; }
"""

#: The formats of marked cells.
_MARKED: dict["Mark", Callable[[str], str]] = {
    "": escape,
    "best": lambda text: f"<b>{escape(text)}</b>",
    "star": lambda text: f"{escape(text)}<sup>*</sup>",
}


def render_html(layout: "Layout", title: str, source: str) -> str:
    """Return a result table as an HTML document; `source` is a sentence about its numbers."""
    return page(title, [paragraph(source), result_grid(layout), items(layout.legend)])


def result_grid(layout: "Layout", anchor: str | None = None) -> str:
    """Return a result table; measured cells link to the `anchor` of their place, by number."""
    left = len(layout.rows)
    heads = [*layout.rows, *(column.head for column in layout.columns)]
    columns = [_measured_cells(column, anchor) for column in layout.columns]
    lines = [
        _cells("td", key, left) + "".join(cells)
        for key, *cells in zip(layout.keys, *columns, strict=True)
    ]
    return _table(heads, lines, left, _groups(layout.columns, left))


def _measured_cells(column: "TextColumn", anchor: str | None) -> list[str]:
    places = column.places if column.places and anchor else [None] * len(column.texts)
    return [
        f"<td>{cell}</td>" if place is None else f'<td><a href="#{anchor}-{place}">{cell}</a></td>'
        for cell, place in zip(column.written(_MARKED), places, strict=True)
    ]


def page(title: str, parts: Sequence[str]) -> str:
    """Return a document with a title and the given parts."""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
            f"<style>{_STYLE}</style></head><body>",
            f"<h2>{escape(title)}</h2>",
            *parts,
            "</body></html>",
            "",
        ]
    )


def body_of(document: str) -> str:
    """Return the part below the title of a document that `page` made."""
    return document.partition("</h2>\n")[2].partition("\n</body>")[0]


def heading(text: str) -> str:
    """Return the heading of a section."""
    return f"<h3>{escape(text)}</h3>"


def paragraph(text: str) -> str:
    """Return a line of Markdown as a paragraph."""
    return f"<p>{inline(text)}</p>"


def items(texts: Sequence[str]) -> str:
    """Return lines of Markdown as a list."""
    return "\n".join(["<ul>", *(f"<li>{inline(text)}</li>" for text in texts), "</ul>"])


def grid(heads: Sequence[str], lines: Sequence[Sequence[str]], left: int) -> str:
    """Return a table whose first `left` columns are aligned to the left."""
    return _table(heads, [_cells("td", line, left) for line in lines], left)


def _table(heads: Sequence[str], lines: Sequence[str], left: int, above: str = "") -> str:
    """Return a table of lines that are HTML, with a row of HTML above its heads."""
    head = f"<table><thead>{above}<tr>{_cells('th', heads, left)}</tr></thead><tbody>"
    return "\n".join([head, *(f"<tr>{line}</tr>" for line in lines), "</tbody></table>"])


def inline(text: str) -> str:
    """Turn bold text and code, the two inline marks of our Markdown, into HTML."""
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", escape(text))
    return re.sub(r"`(.+?)`", r"<code>\1</code>", text)


def _groups(columns: Sequence["TextColumn"], left: int) -> str:
    """Return the row of heads that span several columns, if there are any."""
    if not any(column.group for column in columns):
        return ""
    spans = groupby(column.group for column in columns)
    cells = "".join(
        f'<th colspan="{len(list(group))}">{escape(name)}</th>' for name, group in spans
    )
    return f'<tr><th class="key" colspan="{left}"></th>{cells}</tr>'


def _cells(tag: str, texts: Sequence[str], left: int) -> str:
    kinds = [' class="key"' if i < left else "" for i in range(len(texts))]
    return "".join(
        f"<{tag}{kind}>{escape(text)}</{tag}>" for kind, text in zip(kinds, texts, strict=True)
    )
