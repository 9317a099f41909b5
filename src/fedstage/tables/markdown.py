"""The result table as Markdown, for people: rounded, with units and a legend."""

from collections.abc import Sequence
from math import isnan
from typing import Any

import pandas as pd

from fedstage.tables.labels import join_labels, show_value

_NOTHING = "–"
_UNITS = ("B", "kB", "MB", "GB", "TB")

#: What each column says, one line each.
_LEGEND = {
    "Top-1 accuracy (%)": "mean ± standard deviation (n−1) over seeds; no ± for a single seed.",
    "Seeds": "number of seeds that the values are means of.",
    "Client std (points)": (
        "standard deviation over the clients' models on the common evaluation set, in percentage "
        f"points; {_NOTHING} where all clients share one model."
    ),
    "Own-mix accuracy (%)": (
        "per-class accuracy weighted by a client's own label histogram: mean ± standard deviation "
        "over clients."
    ),
    "Upload": "bytes that one participant sends in the last evaluated round (1 kB = 1000 B).",
    "Download": "bytes that one participant receives in that round.",
    "Round": "the last evaluated round of the runs, which the values are of.",
}


def render(
    table: pd.DataFrame, rows: Sequence[str], columns: Sequence[str], title: str, source: str
) -> str:
    """Return a table as a Markdown document.

    Parameters
    ----------
    table : pandas.DataFrame
        What `summarise` returns.
    rows, columns : sequence of str
        The axes of the rows; where there are `columns`, every combination of their values becomes
        a column of accuracies, otherwise every measured value has its column.
    title : str
        The heading.
    source : str
        One sentence that says what was evaluated.
    """
    body, legend = lay_out(table, rows, columns)
    text = (
        body.map(_escape)
        .rename(columns=_escape)
        .to_markdown(
            index=False,
            disable_numparse=True,  # 61.20 stays 61.20
            colalign=["left"] * len(rows) + ["right"] * (body.shape[1] - len(rows)),
        )
    )
    return "\n".join([f"# {title}", "", source, "", text, "", *legend, ""])


def lay_out(
    table: pd.DataFrame, rows: Sequence[str], columns: Sequence[str]
) -> tuple[pd.DataFrame, list[str]]:
    """Return the cells as texts, and the legend as Markdown list items."""
    body = _pivot(table, rows, columns) if columns else _long(table, rows)
    return body, _pivot_legend(table, rows, columns) if columns else _long_legend(body)


def describe_source(experiment: str, scale: str, last: pd.DataFrame) -> str:
    """Return one sentence about what the table's accuracies are of.

    Parameters
    ----------
    last : pandas.DataFrame
        The last evaluated round of every run.
    """
    roles = " and ".join(f"{role} data" for role in last["role"].unique())
    rounds = last["round"].unique()
    after = f"round {rounds[0]}" if len(rounds) == 1 else "the last evaluated round of each run"
    return f"Experiment `{experiment}` at scale `{scale}`: accuracy on {roles} after {after}."


def human_bytes(count: int) -> str:
    """Write a number of bytes with three digits or more: ``37.5 kB``."""
    value, unit = float(count), 0
    while value >= 999.95 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit else f"{count} B"


def mean_and_std(mean: float, std: float) -> str:
    """Write ``61.23 ± 0.45``, without the deviation where there is none."""
    if isnan(mean):
        return _NOTHING
    return f"{mean:.2f}" if isnan(std) else f"{mean:.2f} ± {std:.2f}"


def _long(table: pd.DataFrame, rows: Sequence[str]) -> pd.DataFrame:
    body = pd.DataFrame({axis: [show_value(value) for value in table[axis]] for axis in rows})
    body["Top-1 accuracy (%)"] = _pairs(table, "top1_accuracy", "std")
    body["Seeds"] = table["seeds"].astype(str)
    body["Client std (points)"] = [mean_and_std(std, float("nan")) for std in table["client_std"]]
    body["Own-mix accuracy (%)"] = _pairs(table, "own_mean", "own_std")
    body["Upload"] = [human_bytes(count) for count in table["bytes_up"]]
    body["Download"] = [human_bytes(count) for count in table["bytes_down"]]
    if "rounds" not in rows and _differs(table, "rounds"):
        body["Round"] = table["rounds"].astype(str)
    return body


def _pivot(table: pd.DataFrame, rows: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """Return one line a row key, and one column a combination of the column axes' values."""
    keys = [tuple(show_value(value) for value in key) for key in _tuples(table, rows)]
    heads = [join_labels(columns, key) for key in _tuples(table, columns)]
    cells = dict(zip(zip(keys, heads, strict=True), _cells(table, [*rows, *columns]), strict=True))
    lines = [
        [*key, *(cells.get((key, head), _NOTHING) for head in dict.fromkeys(heads))]
        for key in dict.fromkeys(keys)
    ]
    return pd.DataFrame(lines, columns=[*rows, *dict.fromkeys(heads)])


def _cells(table: pd.DataFrame, axes: Sequence[str]) -> list[str]:
    """Return ``mean ± std``, and behind it what is not the same for the whole table."""
    cells = _pairs(table, "top1_accuracy", "std")
    if "rounds" not in axes and _differs(table, "rounds"):
        cells = [f"{cell} (round {t})" for cell, t in zip(cells, table["rounds"], strict=True)]
    if _differs(table, "seeds"):
        cells = [f"{cell} (n = {n})" for cell, n in zip(cells, table["seeds"], strict=True)]
    return cells


def _long_legend(body: pd.DataFrame) -> list[str]:
    return [f"- **{name}**: {_LEGEND[name]}" for name in body if name in _LEGEND]


def _pivot_legend(table: pd.DataFrame, rows: Sequence[str], columns: Sequence[str]) -> list[str]:
    cells = "Cells: top-1 accuracy (%), mean ± standard deviation (n−1) over "
    if _differs(table, "seeds"):
        cells += "n seeds; no ± for a single seed"
    elif table["seeds"].iloc[0] == 1:
        cells = "Cells: top-1 accuracy (%) of a single seed"
    else:
        cells += f"{table['seeds'].iloc[0]} seeds"
    return [
        f"- {cells}; {_NOTHING} where there is no run.",
        f"- Rows: {', '.join(rows)}. Columns: {', '.join(columns)}.",
    ]


def _pairs(table: pd.DataFrame, mean: str, std: str) -> list[str]:
    return [mean_and_std(m, s) for m, s in zip(table[mean], table[std], strict=True)]


def _tuples(table: pd.DataFrame, axes: Sequence[str]) -> list[tuple[Any, ...]]:
    return list(table[list(axes)].itertuples(index=False, name=None))


def _differs(table: pd.DataFrame, column: str) -> bool:
    return table[column].nunique() > 1


def _escape(text: str) -> str:
    return text.replace("|", "\\|")
