"""The result table as a page, for the report: what the Markdown shows, in a browser."""

import re
from collections.abc import Sequence
from html import escape

import pandas as pd

from fedstage.tables.markdown import lay_out

_STYLE = """
body { font: 15px/1.5 sans-serif; margin: 2em; color: #222; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { padding: 0.35em 0.9em; text-align: right; border-bottom: 1px solid #ddd; }
th { border-bottom: 2px solid #444; }
.key { text-align: left; }
li { color: #555; }
"""


def render_html(
    table: pd.DataFrame, rows: Sequence[str], columns: Sequence[str], title: str, source: str
) -> str:
    """Return a table as an HTML document; the arguments are those of the Markdown's `render`."""
    body, legend = lay_out(table, rows, columns)
    head = "".join(_cell("th", str(name), name in rows) for name in body.columns)
    lines = [
        "".join(
            _cell("td", text, name in rows) for name, text in zip(body.columns, line, strict=True)
        )
        for line in body.itertuples(index=False, name=None)
    ]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
            f"<style>{_STYLE}</style></head><body>",
            f"<h2>{escape(title)}</h2>",
            f"<p>{_inline(source)}</p>",
            f"<table><thead><tr>{head}</tr></thead><tbody>",
            *(f"<tr>{line}</tr>" for line in lines),
            "</tbody></table>",
            "<ul>",
            *(f"<li>{_inline(item.removeprefix('- '))}</li>" for item in legend),
            "</ul></body></html>",
            "",
        ]
    )


def _cell(tag: str, text: str, is_key: bool) -> str:
    kind = ' class="key"' if is_key else ""
    return f"<{tag}{kind}>{escape(text)}</{tag}>"


def _inline(text: str) -> str:
    """Turn the two inline marks that our Markdown uses into HTML."""
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", escape(text))
    return re.sub(r"`(.+?)`", r"<code>\1</code>", text)
