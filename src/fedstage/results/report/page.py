"""The parts of the report in HTML, and the page around them."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import vl_convert

from fedstage.results.report.look import DRAWING, SORTING, STYLE
from fedstage.results.tables import html


@dataclass(frozen=True)
class Section:
    """A section of the page, named in the table of contents; its parts are HTML."""

    name: str  # of its anchor
    title: str
    parts: Sequence[str]


def render_page(title: str, lead: Sequence[str], sections: Sequence[Section]) -> str:
    """Return one document that needs no other file; it contains the drawing library once.

    `lead` are parts of HTML before the table of contents.
    """
    contents = "".join(
        f'<li><a href="#{section.name}">{escape(section.title)}</a></li>' for section in sections
    )
    library = vl_convert.javascript_bundle(None)  # type: ignore[arg-type]  # its default
    body = [
        part
        for section in sections
        for part in (f'<h2 id="{section.name}">{escape(section.title)}</h2>', *section.parts)
    ]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>",
            f"<h1>{escape(title)}</h1>",
            *lead,
            f'<nav aria-label="Contents"><ul>{contents}</ul></nav>',
            *body,
            f"<script>{SORTING}</script>",
            f'<script type="module">{library}</script>',
            f'<script type="module">{DRAWING}</script>',
            "</body></html>",
            "",
        ]
    )


def chart(spec: Mapping[str, Any], caption: str) -> str:
    """Return a chart of a Vega-Lite specification, with its caption."""
    text = json.dumps(spec, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    # Escapes what would end the script, or open a comment in it.
    text = text.replace("<", "\\u003c")
    data = f'<script class="spec" type="application/json">{text}</script>'
    return f'<div class="chart wide"></div>{data}\n{html.paragraph(caption)}'


def picture(svg: bytes, caption: str) -> str:
    """Return a figure, in the page itself, with its caption."""
    source = f"data:image/svg+xml;base64,{b64encode(svg).decode()}"
    return f'<div class="wide"><img alt="{escape(caption)}" src="{source}"></div>\n' + (
        html.paragraph(caption)
    )


def facts(pairs: Mapping[str, str]) -> str:
    """Return names with their descriptions."""
    told = (f"<dt>{escape(name)}</dt><dd>{html.inline(text)}</dd>" for name, text in pairs.items())
    return f"<dl>{''.join(told)}</dl>"


def folded(name: str, title: str, parts: Sequence[str]) -> str:
    """Return parts that are unfolded by a click on their title; `name` is their anchor."""
    body = "\n".join(parts)
    return (
        f'<details class="folded" id="{name}"><summary>{escape(title)}</summary>\n{body}</details>'
    )


def preformatted(lines: Sequence[str]) -> str:
    """Return lines as preformatted text."""
    text = escape("\n".join(lines))
    return f"<pre>{text}</pre>"


def wide(table: str, *, lines: bool = False) -> str:
    """Return a table that can be scrolled if it is wider than the page.

    Cells break their text, so that the table is narrower, unless they are `lines`.
    """
    kind = "wide lines" if lines else "wide"
    return f'<div class="{kind}">{table}</div>'
