"""The result table as Markdown, for people: rounded, with units and a legend."""

from collections.abc import Sequence

import pandas as pd

from fedstage.results.tables.layout import Column, Layout


def render(layout: Layout, title: str, source: str) -> str:
    """Return a table as a Markdown document.

    Parameters
    ----------
    layout : Layout
        What the table shows.
    title : str
        The heading.
    source : str
        One sentence that says what was evaluated.
    """
    heads = [*layout.rows, *_heads(layout.columns)]
    cells = zip(*(column.texts for column in layout.columns), strict=True)
    lines = [[*key, *texts] for key, texts in zip(layout.keys, cells, strict=True)]
    text = grid(heads, lines, len(layout.rows))
    legend = [f"- {line}" for line in layout.legend]
    return "\n".join([f"# {title}", "", source, "", text, "", *legend, ""])


def grid(heads: Sequence[str], lines: Sequence[Sequence[str]], left: int) -> str:
    """Return texts as a Markdown table whose first `left` columns are set to the left."""
    return str(
        pd.DataFrame([[_escape(text) for text in line] for line in lines]).to_markdown(
            index=False,
            headers=[_escape(head) for head in heads],
            disable_numparse=True,  # 61.20 stays 61.20
            colalign=["left"] * left + ["right"] * (len(heads) - left),
        )
    )


def _heads(columns: Sequence[Column]) -> list[str]:
    """Return the heads of columns; that of a group stands above its first one."""
    before = ["", *(column.group for column in columns)]
    return [
        column.group if column.group and column.group != previous else column.head
        for column, previous in zip(columns, before, strict=False)
    ]


def _escape(text: str) -> str:
    return text.replace("|", "\\|")
