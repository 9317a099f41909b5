"""Documents in Markdown: pages, tables and lists; `html` has functions with the same names.

No text of a document is HTML: a `<` that would begin a tag is written as `&lt;`.
"""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tabulate import tabulate  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from fedstage.results.tables.layout import Layout, Mark, TextColumn

#: The formats of marked cells; a star after a space is no markup in Markdown.
_MARKED: dict["Mark", Callable[[str], str]] = {
    "": str,
    "best": "**{}**".format,
    "star": "{} *".format,
}


def render(layout: "Layout", title: str, source: str) -> str:
    """Return a result table as a Markdown document; `source` is a sentence about its numbers."""
    heads = [*layout.rows, *_heads(layout.columns)]
    columns = [column.written(_MARKED) for column in layout.columns]
    lines = [[*key, *cells] for key, *cells in zip(layout.keys, *columns, strict=True)]
    table = grid(heads, lines, len(layout.rows))
    return page(title, [paragraph(source), table, items(layout.legend)])


def page(title: str, parts: Sequence[str]) -> str:
    """Return a document with a title and the given parts."""
    text = "\n\n".join([f"# {one_line(without_tags(title))}", *parts])
    return text if text.endswith("\n") else f"{text}\n"


def heading(text: str) -> str:
    """Return the heading of a section."""
    return f"## {without_tags(text)}"


def paragraph(text: str) -> str:
    """Return text as a paragraph."""
    return without_tags(text)


def without_tags(text: str) -> str:
    """Return text in which nothing is a tag, a comment or a character reference of HTML."""
    text = re.sub(r"&(?=#?\w+;)", "&amp;", text)
    return re.sub(r"<(?=[a-zA-Z/!?])", "&lt;", text)


def one_line(text: str) -> str:
    """Return text with its line breaks as spaces."""
    return " ".join(text.splitlines())


def items(texts: Sequence[str]) -> str:
    """Return texts as a list."""
    return "\n".join(f"- {one_line(without_tags(text))}" for text in texts)


def grid(heads: Sequence[str], lines: Sequence[Sequence[str]], left: int) -> str:
    """Return a table whose first `left` columns are aligned to the left."""
    return str(
        tabulate(
            [[_escape(text) for text in line] for line in lines],
            headers=[_escape(head) for head in heads],
            tablefmt="pipe",
            disable_numparse=True,  # 61.20 stays 61.20
            colalign=["left"] * left + ["right"] * (len(heads) - left),
        )
    )


def compact_grid(heads: Sequence[str], lines: Sequence[Sequence[str]], left: int) -> str:
    """Return a table as `grid` does, without padding."""
    shown = [[_escape(text) for text in line] for line in (heads, *lines)]
    rule = [":---" if place < left else "---:" for place in range(len(heads))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (shown[0], rule, *shown[1:]))


def _heads(columns: Sequence["TextColumn"]) -> list[str]:
    """Return the heads of columns; the head of a group stands above its first column."""
    before = ["", *(column.group for column in columns)]
    return [
        column.group if column.group and column.group != previous else column.head
        for column, previous in zip(columns, before, strict=False)
    ]


def _escape(text: str) -> str:
    """Return text that stays in its cell, and is no formula or tag."""
    return one_line(without_tags(text)).replace("|", "\\|").replace("$", "\\$")
