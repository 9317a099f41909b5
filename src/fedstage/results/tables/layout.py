"""What a result table shows, cell by cell as texts; Markdown, HTML and LaTeX draw it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import pandas as pd

from fedstage.results.tables.labels import (
    METRICS,
    NOTHING,
    head_of,
    human_bytes,
    join_labels,
    mean_and_std,
    show_value,
    signed,
)
from fedstage.results.tables.runs import AS_RELEASED, AS_RELEASED_STD, PUBLISHED, PUBLISHED_STD
from fedstage.results.tables.summary import is_compared, is_released, metric_of
from fedstage.settings.scores import Metric

_PUBLISHED, _DIFFERENCE = "Published (%)", "Difference (points)"
_RELEASED = "as_released: highest round, no result (%)"

#: What each column says, one line each.
_LEGEND = {
    **dict.fromkeys(
        map(head_of, METRICS), "mean ± standard deviation (n−1) over seeds; no ± for a single seed."
    ),
    _PUBLISHED: f"mean ± deviation that {{source}} reports; {NOTHING} where it reports nothing.",
    _DIFFERENCE: "measured minus published, in percentage points.",
    _RELEASED: (
        "the highest of all evaluated rounds, chosen by the very samples that it is measured on. "
        "Some released code reports that; it is here to compare with such numbers only."
    ),
    "Seeds": "number of seeds that the values are means of.",
    "Client std (points)": (
        "standard deviation over the clients' models on the common evaluation set, in percentage "
        f"points; {NOTHING} where all clients share one model."
    ),
    "Own-mix accuracy (%)": (
        "per-class accuracy weighted by a client's own label histogram: mean ± standard deviation "
        "over clients."
    ),
    "Upload": "bytes that one participant sends in the last evaluated round (1 kB = 1000 B).",
    "Download": "bytes that one participant receives in that round.",
    "Round": "the last evaluated round of the runs, which the values are of.",
}


@dataclass(frozen=True)
class Column:
    """A column of cells.

    Attributes
    ----------
    head : str
        What stands above it.
    texts : list of str
        Its cells.
    group : str
        What stands above it and its neighbours of the same group, if anything.
    means : list of float
        The exact numbers by which its cells are ranked, nan where there is none; empty if they are
        not to be.
    """

    head: str
    texts: list[str]
    group: str = ""
    means: Sequence[float] = ()


@dataclass(frozen=True)
class Layout:
    """A table for people.

    Attributes
    ----------
    rows : list of str
        The names of the row axes.
    keys : list of tuple
        The values of these axes, a tuple a line.
    columns : list of Column
        The cells, a text a line in each.
    legend : list of str
        What must be known to read them, as lines of Markdown.
    """

    rows: list[str]
    keys: list[tuple[str, ...]]
    columns: list[Column]
    legend: list[str]


def lay_out(
    table: pd.DataFrame,
    rows: Sequence[str],
    columns: Sequence[str],
    source: str | None = None,
    notes: Iterable[str] = (),
) -> Layout:
    """Return the cells of a table as texts, and its legend.

    Parameters
    ----------
    table : pandas.DataFrame
        What `summarise` returns.
    rows, columns : sequence of str
        The axes of the rows; where there are `columns`, every combination of their values becomes
        a column of the metric, otherwise every measured value has its column.
    source : str, optional
        Where the published numbers stand, if the table has any.
    notes : iterable of str
        Further lines of the legend.
    """
    keys, cells = _pivot(table, rows, columns) if columns else _long(table, rows)
    legend = _pivot_legend(table, rows, columns, source) if columns else _long_legend(cells, source)
    return Layout(list(rows), keys, cells, [*legend, *notes])


def describe_source(
    experiment: str, scale: str, last: pd.DataFrame, metric: Metric = "top1_accuracy"
) -> str:
    """Return one sentence about what the table's numbers are of.

    Parameters
    ----------
    last : pandas.DataFrame
        The last evaluated round of every run.
    metric : str
        What the table is of.
    """
    name = METRICS[metric].removeprefix("top-1 ")
    roles = " and ".join(f"{role} data" for role in last["role"].unique())
    rounds = last["round"].unique()
    after = f"round {rounds[0]}" if len(rounds) == 1 else "the last evaluated round of each run"
    return f"Experiment `{experiment}` at scale `{scale}`: {name} on {roles} after {after}."


# --- a column a measured value --------------------------------------------------------------------


def _long(table: pd.DataFrame, rows: Sequence[str]) -> tuple[list[tuple[str, ...]], list[Column]]:
    metric = metric_of(table)
    columns = [Column(head_of(metric), _pairs(table, metric, "std"), "", _numbers(table))]
    if is_compared(table):
        published = _pairs(table, PUBLISHED, PUBLISHED_STD)
        columns.append(Column(_PUBLISHED, published, "", list(table[PUBLISHED])))
        columns.append(Column(_DIFFERENCE, _differences(table)))
    if is_released(table):
        columns.append(Column(_RELEASED, _pairs(table, AS_RELEASED, AS_RELEASED_STD)))
    columns += [
        Column("Seeds", list(table["seeds"].astype(str))),
        Column("Client std (points)", [mean_and_std(std) for std in table["client_std"]]),
        Column("Own-mix accuracy (%)", _pairs(table, "own_mean", "own_std")),
        Column("Upload", [human_bytes(count) for count in table["bytes_up"]]),
        Column("Download", [human_bytes(count) for count in table["bytes_down"]]),
    ]
    if "rounds" not in rows and _differs(table, "rounds"):
        columns.append(Column("Round", list(table["rounds"].astype(str))))
    return _keys(table, rows), columns


def _long_legend(columns: Iterable[Column], source: str | None) -> list[str]:
    return [
        f"**{column.head}**: {_LEGEND[column.head].format(source=source)}" for column in columns
    ]


# --- a column a combination of the column axes' values --------------------------------------------


def _pivot(
    table: pd.DataFrame, rows: Sequence[str], columns: Sequence[str]
) -> tuple[list[tuple[str, ...]], list[Column]]:
    keys = _keys(table, rows)
    lines = list(dict.fromkeys(keys))
    points = table[list(columns)].itertuples(index=False, name=None)
    heads = [join_labels(columns, point) for point in points]
    every = _cells(table, [*rows, *columns])
    placed = []
    for head in dict.fromkeys(heads):
        at = {key: i for i, key in enumerate(keys) if heads[i] == head}
        placed += [_under(head, column, [at.get(line) for line in lines]) for column in every]
    return lines, placed


def _cells(table: pd.DataFrame, axes: Sequence[str]) -> list[Column]:
    """Return the columns that each group has, with a cell for every row of the table."""
    measured, numbers = _measured(table, axes), _numbers(table)
    columns = [Column("measured", measured, "", numbers)]
    if is_compared(table):
        published = _pairs(table, PUBLISHED, PUBLISHED_STD)
        columns.append(Column("published", published, "", list(table[PUBLISHED])))
        columns.append(Column("difference", _differences(table)))
    if is_released(table):
        columns.append(Column(_RELEASED, _pairs(table, AS_RELEASED, AS_RELEASED_STD)))
    return columns if len(columns) > 1 else [Column("", measured, "", numbers)]


def _under(head: str, column: Column, places: Sequence[int | None]) -> Column:
    """Return the cells of a column that belong under a head, by their places, a cell a line."""
    texts = [NOTHING if place is None else column.texts[place] for place in places]
    ranked = [nan if place is None else column.means[place] for place in places if column.means]
    if not column.head:
        return Column(head, texts, "", ranked)
    return Column(column.head, texts, head, ranked)


def _measured(table: pd.DataFrame, axes: Sequence[str]) -> list[str]:
    """Return ``mean ± std``, and behind it what is not the same for the whole table."""
    cells = _pairs(table, metric_of(table), "std")
    if "rounds" not in axes and _differs(table, "rounds"):
        cells = [f"{cell} (round {t})" for cell, t in zip(cells, table["rounds"], strict=True)]
    if is_compared(table) or _differs(table, "seeds"):
        cells = [f"{cell} (n = {n})" for cell, n in zip(cells, table["seeds"], strict=True)]
    return cells


def _pivot_legend(
    table: pd.DataFrame, rows: Sequence[str], columns: Sequence[str], source: str | None
) -> list[str]:
    name = METRICS[metric_of(table)]
    cells = f"Cells: {name} (%), mean ± standard deviation (n−1) over "
    if is_compared(table) or _differs(table, "seeds"):
        cells += "n seeds; no ± for a single seed"
    elif table["seeds"].iloc[0] == 1:
        cells = f"Cells: {name} (%) of a single seed"
    else:
        cells += f"{table['seeds'].iloc[0]} seeds"
    legend = [
        f"{cells}; {NOTHING} where there is no run.",
        f"Rows: {', '.join(rows)}. Columns: {', '.join(columns)}.",
    ]
    if is_compared(table):
        legend.append(f"**published**: {_LEGEND[_PUBLISHED].format(source=source)}")
        legend.append(f"**difference**: {_LEGEND[_DIFFERENCE]}")
    if is_released(table):
        legend.append(f"**{_RELEASED}**: {_LEGEND[_RELEASED]}")
    return legend


# --- texts ----------------------------------------------------------------------------------------


def _keys(table: pd.DataFrame, rows: Sequence[str]) -> list[tuple[str, ...]]:
    tuples: Iterable[tuple[Any, ...]] = table[list(rows)].itertuples(index=False, name=None)
    return [tuple(show_value(value) for value in key) for key in tuples]


def _pairs(table: pd.DataFrame, mean: str, std: str) -> list[str]:
    return [mean_and_std(m, s) for m, s in zip(table[mean], table[std], strict=True)]


def _differences(table: pd.DataFrame) -> list[str]:
    return [signed(difference) for difference in table["difference"]]


def _numbers(table: pd.DataFrame) -> list[float]:
    return list(table[metric_of(table)])


def _differs(table: pd.DataFrame, column: str) -> bool:
    return bool(table[column].nunique() > 1)
