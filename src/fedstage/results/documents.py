"""Tables as files: Markdown, CSV, HTML, LaTeX and Parquet, by the suffix of their name."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from tabulate import tabulate  # type: ignore[import-untyped]

from fedstage.errors import FedstageError
from fedstage.results.table import BEST, STAR, Table
from fedstage.results.tidy import arrow_type
from fedstage.storage.files import save_text
from fedstage.storage.tables import save_table

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_LATEX = str.maketrans(
    {
        **{char: f"\\{char}" for char in "&%$#_{}"},
        "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
        "±": r"$\pm$", "−": "$-$", "–": "--", "α": r"$\alpha$", "τ": r"$\tau$", "ε": r"$\epsilon$",
        "δ": r"$\delta$", "≥": r"$\geq$", "≤": r"$\leq$", "∞": r"$\infty$", "×": r"$\times$",
        "<": r"\textless{}", ">": r"\textgreater{}",
    }
)  # fmt: skip
_HTML = {BEST: "<b>{}</b>", STAR: "{} *"}


def write_tables(path: Path, tables: Sequence[Table]) -> None:
    """Write tables to a file of its suffix; exact numbers, CSV and Parquet, are of the first."""
    if path.suffix not in WRITERS:
        raise FedstageError(f"{path}: suffix = {path.suffix!r}: use {', '.join(WRITERS)}")
    if path.suffix == ".parquet":
        exact = {str(name): _plain(column) for name, column in tables[0].exact.items()}
        schema = pa.schema([(name, arrow_type(values)) for name, values in exact.items()])
        save_table(path, exact, schema)
    else:
        save_text(path, WRITERS[path.suffix](tables))


def _plain(column: "pd.Series[Any]") -> list[Any]:
    values = [None if pd.isna(value) else value for value in column.astype(object)]
    texts = arrow_type(values) == pa.string()
    return [value if value is None or not texts else str(value) for value in values]


# --- CSV ------------------------------------------------------------------------------------------


def as_csv(tables: Sequence[Table]) -> str:
    """Return the exact numbers of the first table."""
    return csv_of(tables[0].exact)


def csv_of(frame: pd.DataFrame) -> str:
    """Return a frame as CSV, in which spreadsheets find no formula."""
    texts = frame.select_dtypes(exclude=["number", "bool"])
    safe = frame.assign(**{str(name): column.map(harmless) for name, column in texts.items()})
    return safe.rename(columns=harmless).to_csv(index=False, lineterminator="\n")


def harmless(cell: Any) -> Any:
    """Return a cell of a CSV file, quoted by an apostrophe if spreadsheets read it as a formula.

    That is a text which starts with = + - @ or white space, and is not a number.
    """
    if not isinstance(cell, str) or cell[:1] not in _FORMULA:
        return cell
    with suppress(ValueError):
        float(cell)
        return cell
    return f"'{cell}"


# --- Markdown -------------------------------------------------------------------------------------


def as_markdown(tables: Sequence[Table]) -> str:
    """Return tables as a Markdown document, in which no text is HTML."""
    parts = [f"# {without_tags(tables[0].title)}"]
    for number, table in enumerate(tables):
        parts += [f"## {without_tags(table.title)}"] if number else []
        parts += [without_tags(line) for line in table.above]
        parts.append(grid(table))
        parts.append("\n".join(f"- {without_tags(line)}" for line in table.below))
    return "\n\n".join(part for part in parts if part) + "\n"


def grid(table: Table) -> str:
    """Return the cells of a table in Markdown; a star after a space is no markup there."""
    right = len(table.shown.columns) - table.left
    return str(
        tabulate(
            marked(table, _escaped, {BEST: "**{}**", STAR: "{} *"}),
            headers=[_escaped(head) for head in table.shown.columns],
            tablefmt="pipe",
            disable_numparse=True,  # 61.20 stays 61.20
            colalign=["left"] * table.left + ["right"] * right,
        )
    )


def marked(table: Table, escaped: Callable[[str], str], marks: dict[str, str]) -> list[list[str]]:
    """Return the cells of a table, line by line, as a format writes them and their marks."""
    return [
        [
            marks.get(table.marks.get((i, j), ""), "{}").format(escaped(text))
            for j, text in enumerate(line)
        ]
        for i, line in enumerate(table.shown.itertuples(index=False, name=None))
    ]


def without_tags(text: str) -> str:
    """Return text on one line, in which nothing is a tag or a character reference of HTML."""
    text = re.sub(r"&(?=#?\w+;)", "&amp;", " ".join(str(text).splitlines()))
    return re.sub(r"<(?=[a-zA-Z/!?])", "&lt;", text)


def _escaped(text: str) -> str:
    return without_tags(text).replace("|", "\\|").replace("$", "\\$")


# --- HTML and LaTeX -------------------------------------------------------------------------------


def as_html(tables: Sequence[Table]) -> str:
    """Return tables as HTML, without a page around them."""
    parts = []
    for table in tables:
        frame = pd.DataFrame(
            marked(table, escape, _HTML), columns=[escape(head) for head in table.shown.columns]
        )
        about = [f"<p>{inline(line)}</p>" for line in table.above]
        notes = "".join(f"<li>{inline(line)}</li>" for line in table.below)
        body = frame.to_html(index=False, escape=False, border=0)
        parts += [f"<h2>{escape(table.title)}</h2>", *about, body, f"<ul>{notes}</ul>"]
    return "\n".join(parts) + "\n"


def inline(text: str) -> str:
    """Return a line of Markdown as HTML: bold, code, links, and nothing else."""
    safe = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", escape(text))
    safe = re.sub(r"\[([^]]+)\]\(([^):]+)\)", r'<a href="\2">\1</a>', safe)
    return re.sub(r"`(.+?)`", r"<code>\1</code>", safe)


def as_latex(tables: Sequence[Table]) -> str:
    """Return tables as floats of LaTeX with booktabs, their lines of text as the caption."""
    parts = []
    for table in tables:
        cells = marked(table, _tex, {BEST: r"\textbf{{{}}}", STAR: "{}$^*$"})
        frame = pd.DataFrame(cells, columns=[_tex(head) for head in table.shown.columns])
        caption = " ".join([f"{table.title}.", *table.above, *table.below])
        caption = re.sub(r"\*\*(.+?)\*\*", r"\\textbf{\1}", _tex(caption.replace("`", "")))
        style = frame.style.hide(axis="index")
        align = "l" * table.left + "r" * (len(frame.columns) - table.left)
        parts.append(
            style.to_latex(hrules=True, caption=caption, column_format=align, position="t")
        )
    return "\n".join(parts)


def _tex(text: str) -> str:
    return " ".join(str(text).splitlines()).translate(_LATEX)


WRITERS: dict[str, Callable[[Sequence[Table]], str]] = {
    ".md": as_markdown,
    ".csv": as_csv,
    ".html": as_html,
    ".tex": as_latex,
    ".parquet": as_csv,
}
