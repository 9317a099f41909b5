"""The cells of a result table as texts, for Markdown, HTML and LaTeX."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Any, Literal, NamedTuple

import pandas as pd

from fedstage.results.tables.labels import (
    DIFFERENCE,
    EPSILON,
    LEGEND,
    METRICS,
    NOTHING,
    OWN_MIX,
    OWN_TEST,
    PUBLISHED_HEAD,
    RELEASED,
    head_of,
    human_bytes,
    join_labels,
    mean_and_std,
    show_guarantee,
    show_value,
    signed_interval,
)
from fedstage.results.tables.measured import AS_RELEASED, PRIVATE
from fedstage.results.tables.runs import (
    AS_RELEASED_STD,
    DIFFERENCE_HIGH,
    DIFFERENCE_LOW,
    PUBLISHED,
    PUBLISHED_STD,
)
from fedstage.results.tables.summary import is_compared, is_private, is_released, metric_of
from fedstage.settings.scores import Axis, Metric

#: Further columns of a table: whether a row is of a federated method (by default all are), and its
#: measured values by seed.
FEDERATED, BY_SEED = "_federated", "_by_seed"
#: The values of a line on the row axes.
Key = tuple[str, ...]
#: The mark of a cell: the best of its column, or not distinguished from it.
Mark = Literal["", "best", "star"]


class Mean(NamedTuple):
    """A mean over seeds, nan if there is none or if it is not ranked, and each seed's value.

    Published means have no values.
    """

    value: float = nan
    by_seed: Mapping[Axis, float] = {}


@dataclass(frozen=True)
class TextColumn:
    """A column of cells."""

    head: str
    texts: list[str]
    group: str = ""  # a second head above, shared with its neighbours
    means: Sequence[Mean] = ()  # what ranks its cells
    places: Sequence[int | None] = ()  # of its cells among the rows of the table, if measured
    marks: Sequence[Mark] = ()  # of its cells

    def written(self, texts: Mapping[Mark, Callable[[str], str]]) -> list[str]:
        """Return the cells as a format writes them, according to their marks."""
        marks = self.marks or [""] * len(self.texts)
        return [texts[mark](text) for mark, text in zip(marks, self.texts, strict=True)]


@dataclass(frozen=True)
class Layout:
    """A table for people: its row axes, their values in each line, its columns and its legend.

    The lines of the legend are Markdown.
    """

    rows: list[str]
    keys: list[Key]
    columns: list[TextColumn]
    legend: list[str]

    def blocks(self) -> list[list[int]]:
        """Return the lines of each block, which share all row axes but the last."""
        blocks: dict[Key, list[int]] = {}
        for line, key in enumerate(self.keys):
            blocks.setdefault(key[:-1], []).append(line)
        return list(blocks.values())


def lay_out(
    table: pd.DataFrame,
    rows: Sequence[str],
    columns: Sequence[str],
    source: str | None = None,
    notes: Iterable[str] = (),
) -> Layout:
    """Return the cells, as texts, of a table that `summarise` made, and its legend.

    Without column axes, each measured value that any row has is a column; otherwise each
    combination of their values has a column of the metric. `source` names the paper and table of
    the published numbers, and `notes` are further lines of the legend.
    """
    keys, cells = _pivot(table, rows, columns) if columns else _long(table, rows)
    legend = _pivot_legend(table, rows, columns, source) if columns else _long_legend(cells, source)
    return Layout(list(rows), keys, cells, [*legend, *notes])


def describe_source(
    experiment: str, scale: str, last: pd.DataFrame, metric: Metric = "top1_accuracy"
) -> str:
    """Return a sentence about the metric, data and round of a table's numbers.

    `last` has the last evaluated round of each run.
    """
    name = METRICS[metric].removeprefix("Top-1 ")
    roles = " and ".join(f"{role} data" for role in last["role"].unique())
    rounds = last["round"].unique()
    after = f"round {rounds[0]}" if len(rounds) == 1 else "the last evaluated round of each run"
    return f"Experiment `{experiment}` at scale `{scale}`: {name} on {roles} after {after}."


# --- one column per measured value ----------------------------------------------------------------


def _long(table: pd.DataFrame, rows: Sequence[str]) -> tuple[list[Key], list[TextColumn]]:
    metric = metric_of(table)
    columns = [
        TextColumn(
            head_of(metric),
            _pairs(table, metric, "std"),
            means=_means(table, metric, BY_SEED),
            places=range(len(table)),
        ),
        *_further_columns(table, PUBLISHED_HEAD, DIFFERENCE),
        TextColumn("Seeds", list(table["seeds"].astype(str))),
        TextColumn("Client std (points)", [mean_and_std(std) for std in table["client_std"]]),
        TextColumn(OWN_TEST, _pairs(table, "own_test_mean", "own_test_std")),
        TextColumn(OWN_MIX, _pairs(table, "own_mean", "own_std")),
        TextColumn("Upload", [human_bytes(count) for count in table["bytes_up"]]),
        TextColumn("Download", [human_bytes(count) for count in table["bytes_down"]]),
    ]
    if _ends_differ(table, rows):
        columns.append(TextColumn("Round", list(table["rounds"].astype(str))))
    return _keys(table, rows), [column for column in columns if set(column.texts) != {NOTHING}]


def _further_columns(table: pd.DataFrame, published: str, difference: str) -> list[TextColumn]:
    """Return the columns of published numbers, maxima over rounds and privacy, if there are any.

    `published` and `difference` are the heads of the former.
    """
    columns = []
    if is_compared(table):
        numbers = _pairs(table, PUBLISHED, PUBLISHED_STD)
        columns.append(TextColumn(published, numbers, means=_means(table, PUBLISHED)))
        columns.append(TextColumn(difference, _differences(table)))
    if is_released(table):
        columns.append(TextColumn(RELEASED, _pairs(table, AS_RELEASED, AS_RELEASED_STD)))
    if is_private(table):
        known = table.reindex(columns=PRIVATE.names).to_numpy()
        rows = (dict(zip(PRIVATE.names, row, strict=True)) for row in known)
        columns.append(TextColumn(EPSILON, [show_guarantee(row) for row in rows]))
    return columns


def _long_legend(columns: Iterable[TextColumn], source: str | None) -> list[str]:
    return [f"**{column.head}**: {LEGEND[column.head].format(source=source)}" for column in columns]


# --- one column per combination of the column axes' values ----------------------------------------


def _pivot(
    table: pd.DataFrame, rows: Sequence[str], columns: Sequence[str]
) -> tuple[list[Key], list[TextColumn]]:
    keys = _keys(table, rows)
    lines = list(dict.fromkeys(keys))
    places = table[list(columns)].itertuples(index=False, name=None)
    heads = [join_labels(columns, place) for place in places]
    cells = TextColumn(
        "measured",
        _measured(table, [*rows, *columns]),
        means=_means(table, metric_of(table), BY_SEED),
        places=range(len(table)),
    )
    every = [cells, *_further_columns(table, "published", "difference")]
    placed = []
    for head in dict.fromkeys(heads):
        at = {key: i for i, key in enumerate(keys) if heads[i] == head}
        group = [_under(head, column, [at.get(line) for line in lines]) for column in every]
        placed += group if len(every) > 1 else [replace(group[0], head=head, group="")]
    return lines, placed


def _under(group: str, column: TextColumn, places: Sequence[int | None]) -> TextColumn:
    """Return the cells of a column in one group: for each line its place in the table, if any."""
    texts = [NOTHING if place is None else column.texts[place] for place in places]
    means = [Mean() if place is None else column.means[place] for place in places if column.means]
    return TextColumn(column.head, texts, group, means, list(places) if column.places else ())


def _measured(table: pd.DataFrame, axes: Sequence[str]) -> list[str]:
    """Return ``mean ± std``, followed by the round and number of seeds if these differ."""
    cells = _pairs(table, metric_of(table), "std")
    if _ends_differ(table, axes):
        cells = [f"{cell} (round {t})" for cell, t in zip(cells, table["rounds"], strict=True)]
    if _shows_seeds(table):
        cells = [f"{cell} (n = {n})" for cell, n in zip(cells, table["seeds"], strict=True)]
    return cells


def _pivot_legend(
    table: pd.DataFrame, rows: Sequence[str], columns: Sequence[str], source: str | None
) -> list[str]:
    name = METRICS[metric_of(table)]
    cells = f"Cells: {name} (%), mean ± standard deviation (n−1) over "
    if _shows_seeds(table):
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
        legend.append(f"**published**: {LEGEND[PUBLISHED_HEAD].format(source=source)}")
        legend.append(f"**difference**: {LEGEND[DIFFERENCE]}")
    if is_released(table):
        legend.append(f"**{RELEASED}**: {LEGEND[RELEASED]}")
    if is_private(table):
        legend.append(f"**{EPSILON}**: {LEGEND[EPSILON]}")
    return legend


# --- texts ----------------------------------------------------------------------------------------


def _keys(table: pd.DataFrame, rows: Sequence[str]) -> list[Key]:
    tuples: Iterable[tuple[Any, ...]] = table[list(rows)].itertuples(index=False, name=None)
    return [tuple(show_value(value) for value in key) for key in tuples]


def _pairs(table: pd.DataFrame, mean: str, std: str) -> list[str]:
    return [mean_and_std(m, s) for m, s in zip(table[mean], table[std], strict=True)]


def _means(table: pd.DataFrame, mean: str, by_seed: str = "") -> list[Mean]:
    """Return the means that rank the rows of a table; only rows of federated methods are ranked."""
    ranked = table[FEDERATED] if FEDERATED in table else [True] * len(table)
    seeds: Iterable[Mapping[Axis, float]] = (
        table[by_seed] if by_seed in table else [{}] * len(table)
    )
    columns = zip(table[mean], seeds, ranked, strict=True)
    return [Mean(m, values) if federated else Mean() for m, values, federated in columns]


def _differences(table: pd.DataFrame) -> list[str]:
    ends = table[["difference", DIFFERENCE_LOW, DIFFERENCE_HIGH]].itertuples(index=False)
    return [signed_interval(*row) for row in ends]


def _shows_seeds(table: pd.DataFrame) -> bool:
    return is_compared(table) or table["seeds"].nunique() > 1


def _ends_differ(table: pd.DataFrame, axes: Iterable[str]) -> bool:
    """Whether runs ended in different rounds, and no axis (or its label) shows these."""
    return "rounds" not in map(str.lower, axes) and bool(table["rounds"].nunique() > 1)
