"""The result table as a page, for the report: what the Markdown shows, in a browser."""

import re
from collections.abc import Sequence
from html import escape
from itertools import groupby

from fedstage.results.tables.layout import Column, Layout

_STYLE = """
body { font: 15px/1.5 sans-serif; margin: 2em; color: #222; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { padding: 0.35em 0.9em; text-align: right; border-bottom: 1px solid #ddd; }
th { border-bottom: 2px solid #444; }
th[colspan] { text-align: center; border-bottom: 1px solid #444; }
.key { text-align: left; }
li { color: #555; }
"""


def render_html(layout: Layout, title: str, source: str) -> str:
    """Return a table as an HTML document; the arguments are those of the Markdown's `render`."""
    cells = zip(*(column.texts for column in layout.columns), strict=True)
    lines = [[*key, *texts] for key, texts in zip(layout.keys, cells, strict=True)]
    heads = [*layout.rows, *(column.head for column in layout.columns)]
    table = grid(heads, lines, len(layout.rows), _groups(layout.columns, len(layout.rows)))
    return page(title, [f"<p>{inline(source)}</p>", table, items(layout.legend)])


def page(title: str, parts: Sequence[str]) -> str:
    """Return an HTML document of a heading and the given parts."""
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


def grid(heads: Sequence[str], lines: Sequence[Sequence[str]], left: int, above: str = "") -> str:
    """Return texts as a table whose first `left` columns are set to the left.

    `above` is a row that stands over the heads.
    """
    head = "".join(_cell("th", text, i < left) for i, text in enumerate(heads))
    body = ["".join(_cell("td", text, i < left) for i, text in enumerate(line)) for line in lines]
    return "\n".join(
        [
            f"<table><thead>{above}<tr>{head}</tr></thead><tbody>",
            *(f"<tr>{line}</tr>" for line in body),
            "</tbody></table>",
        ]
    )


def items(texts: Sequence[str]) -> str:
    """Return lines of Markdown as a list."""
    return "\n".join(["<ul>", *(f"<li>{inline(text)}</li>" for text in texts), "</ul>"])


def inline(text: str) -> str:
    """Turn the two inline marks that our Markdown uses into HTML."""
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", escape(text))
    return re.sub(r"`(.+?)`", r"<code>\1</code>", text)


def _groups(columns: Sequence[Column], left: int) -> str:
    """Return the row of heads that stand above several columns, if there are any."""
    if not any(column.group for column in columns):
        return ""
    groups = [
        (name, len(list(group))) for name, group in groupby(column.group for column in columns)
    ]
    cells = "".join(f'<th colspan="{width}">{escape(name)}</th>' for name, width in groups)
    return f'<tr><th class="key" colspan="{left}"></th>{cells}</tr>'


def _cell(tag: str, text: str, is_key: bool) -> str:
    kind = ' class="key"' if is_key else ""
    return f"<{tag}{kind}>{escape(text)}</{tag}>"
