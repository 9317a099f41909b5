r"""The result table in LaTeX, for papers: booktabs rules, the best federated method bold.

Rules separate the blocks of `fedstage.results.tables.presented`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from fedstage.results.tables.layout import Layout, Mark

_ESCAPED = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': "''",
        "[": "{[}",  # after the end of a line it would be an argument
        "]": "{]}",
        **dict.fromkeys("\n\r\v\f\x85\u2028\u2029", " "),
        "±": r"$\pm$",
        "−": "$-$",
        "–": "--",
        "α": r"$\alpha$",
        "τ": r"$\tau$",
        "ε": r"$\varepsilon$",
        "δ": r"$\delta$",
        "∞": r"$\infty$",
    }
)


def render_latex(layout: Layout, title: str, source: str, label: str) -> str:
    r"""Return a result table as a LaTeX float for ``\input``; its label is ``tab:`` and `label`."""
    head = [*layout.rows, *(column.head for column in layout.columns)]
    return render_float(
        f"{escape(title)}. {inline(source)}",
        label,
        "l" * len(layout.rows) + "r" * len(layout.columns),
        [*_groups(layout), line(head)],
        list(_body(layout)),
        layout.legend,
    )


def render_float(
    caption: str,
    label: str,
    alignment: str,
    heads: Sequence[str],
    body: Sequence[str],
    notes: Sequence[str],
) -> str:
    """Return a float with a table and notes below it.

    The caption, and the lines of heads and body, are LaTeX; the notes are Markdown.
    """
    return "\n".join(
        [
            r"% Needs \usepackage{booktabs}.",
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{caption}}}",
            rf"  \label{{tab:{re.sub(r'[^A-Za-z0-9_-]', '-', label)}}}",
            rf"  \begin{{tabular}}{{{alignment}}}",
            r"    \toprule",
            *heads,
            r"    \midrule",
            *body,
            r"    \bottomrule",
            r"  \end{tabular}",
            r"  \par\medskip",
            r"  \begin{minipage}{\linewidth}\footnotesize",
            *(rf"    {inline(note)}\par" for note in notes),
            r"  \end{minipage}",
            r"\end{table}",
            "",
        ]
    )


def escape(text: str) -> str:
    """Return text with all special characters of LaTeX escaped."""
    return text.translate(_ESCAPED)


def inline(text: str) -> str:
    """Escape text, and turn bold text and code, the inline marks of our Markdown, into LaTeX."""
    return "".join(map(_mark, re.split(r"(\*\*.+?\*\*|`.+?`)", text)))


#: The formats of marked cells.
_MARKED: dict[Mark, Callable[[str], str]] = {
    "": escape,
    "best": lambda text: rf"\textbf{{{escape(text)}}}",
    "star": lambda text: f"{escape(text)}$^{{*}}$",
}


def _mark(part: str) -> str:
    if part.startswith("**") and part.endswith("**") and len(part) > 4:
        return rf"\textbf{{{escape(part[2:-2])}}}"
    if part.startswith("`") and part.endswith("`") and len(part) > 2:
        return rf"\texttt{{{escape(part[1:-1])}}}"
    return escape(part)


def _groups(layout: Layout) -> Iterator[str]:
    """Yield the line of heads that span several columns, and the rules below them."""
    if not any(column.group for column in layout.columns):
        return
    cells, rules, first = [], [], len(layout.rows) + 1
    for name, group in groupby(column.group for column in layout.columns):
        last = first + len(list(group)) - 1
        cells.append(rf"\multicolumn{{{last - first + 1}}}{{c}}{{{escape(name)}}}")
        rules.append(rf"\cmidrule(lr){{{first}-{last}}}")
        first = last + 1
    yield f"    {'& ' * len(layout.rows)}{' & '.join(cells)} \\\\"
    yield f"    {' '.join(rules)}"


def _body(layout: Layout) -> Iterator[str]:
    """Yield the lines, with rules between blocks; only the first line of a block shows its key."""
    blocks = layout.blocks()
    columns = [column.written(_MARKED) for column in layout.columns]
    for block in blocks:
        if block is not blocks[0] and len(blocks) < len(layout.keys):
            yield r"    \midrule"
        for number, place in enumerate(block):
            key = layout.keys[place]
            shown = [*("" if number else text for text in key[:-1]), key[-1]]
            yield line(shown, [cells[place] for cells in columns])


def line(texts: Sequence[str], cells: Sequence[str] = ()) -> str:
    """Write a line of plain texts, then of cells that are LaTeX."""
    return f"    {' & '.join([*map(escape, texts), *cells])} \\\\"
