r"""The result table in LaTeX, for papers: booktabs rules, the best federated method bold.

Each column is ranked by itself, within a block: the lines that share all row axes but the last,
such as the methods of one model. What Welch's test cannot tell from the best has a star.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from math import isnan

from fedstage.results.intervals import welch_interval
from fedstage.results.tables.layout import Layout, Mean, TextColumn

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
        "[": "{[}",  # behind the end of a line it would be an argument
        "]": "{]}",
        **dict.fromkeys("\n\r\v\f\x85\u2028\u2029", " "),
        "±": r"$\pm$",
        "−": "$-$",
        "–": "--",
        "α": r"$\alpha$",
        "τ": r"$\tau$",
    }
)
_NOTE = (
    "**Bold**: the highest mean of a federated method in its column and block; those trained on "
    "pooled data, or by each client alone, are not ranked. "
)
_TESTED = (
    "A star: not told apart from it, because the 95 % confidence interval of the difference "
    "(Welch's t-test over seeds) has 0 in it."
)
_UNTESTED = "With a single seed no test tells others apart from it."


def render_latex(layout: Layout, title: str, source: str, label: str) -> str:
    r"""Return a result table as a LaTeX float for ``\input``; its label is ``tab:`` and `label`."""
    left, right = len(layout.rows), len(layout.columns)
    return "\n".join(
        [
            r"% Needs \usepackage{booktabs}.",
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{escape(title)}. {inline(source)}}}",
            rf"  \label{{tab:{re.sub(r'[^A-Za-z0-9_-]', '-', label)}}}",
            rf"  \begin{{tabular}}{{{'l' * left}{'r' * right}}}",
            r"    \toprule",
            *_groups(layout),
            _line([*layout.rows, *(column.head for column in layout.columns)]),
            r"    \midrule",
            *_body(layout),
            r"    \bottomrule",
            r"  \end{tabular}",
            r"  \par\medskip",
            r"  \begin{minipage}{\linewidth}\footnotesize",
            *(rf"    {inline(line)}\par" for line in [*layout.legend, *_notes(layout)]),
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
    blocks = _blocks(layout.keys)
    for block in blocks:
        if block is not blocks[0] and len(blocks) < len(layout.keys):
            yield r"    \midrule"
        columns = [_marked(column, block) for column in layout.columns]
        for number, line in enumerate(block):
            key = layout.keys[line]
            shown = [*("" if number else text for text in key[:-1]), key[-1]]
            yield _line(shown, [column[number] for column in columns])


def _blocks(keys: Sequence[tuple[str, ...]]) -> list[list[int]]:
    """Return the lines of each block."""
    blocks: dict[tuple[str, ...], list[int]] = {}
    for line, key in enumerate(keys):
        blocks.setdefault(key[:-1], []).append(line)
    return list(blocks.values())


def _line(texts: Sequence[str], cells: Sequence[str] = ()) -> str:
    """Write a line of plain texts, then of cells that are LaTeX."""
    return f"    {' & '.join([*map(escape, texts), *cells])} \\\\"


def _marked(column: TextColumn, block: Sequence[int]) -> list[str]:
    """Return the cells of a block, the highest bold, a star at those not told apart from it."""
    cells = [escape(column.texts[line]) for line in block]
    means = [column.means[line] for line in block] if column.means else []
    ranked = [mean for mean in means if not isnan(mean.value)]
    if len({mean.value for mean in ranked}) < 2:
        return cells
    best = max(ranked, key=lambda mean: mean.value)
    return [_shown(cell, mean, best) for cell, mean in zip(cells, means, strict=True)]


def _shown(cell: str, mean: Mean, best: Mean) -> str:
    """Mark a cell as the best of its block, or as one that may be as good."""
    if mean.value == best.value:
        return rf"\textbf{{{cell}}}"
    low, high = welch_interval(best, mean)
    return rf"{cell}$^{{*}}$" if low <= 0 <= high else cell


def _notes(layout: Layout) -> list[str]:
    """Return what the marks mean, where there are any."""
    means = [mean for column in layout.columns for mean in column.means if not isnan(mean.value)]
    tested = any(mean.seeds > 1 and not isnan(mean.std) for mean in means)
    return [_NOTE + (_TESTED if tested else _UNTESTED)] if means else []
