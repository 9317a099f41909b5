"""Measured against published numbers: a point a cell, and the line on which they would agree."""

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedstage.errors import FedstageError
from fedstage.results.figures.accuracy import line_axis
from fedstage.results.figures.style import (
    MARKERS,
    colours_of,
    facet_grid,
    set_legend,
    set_note,
    set_title,
    style,
)
from fedstage.results.tables.labels import METRICS, join_labels, show_value
from fedstage.results.tables.runs import PUBLISHED, PUBLISHED_STD
from fedstage.results.tables.summary import is_compared, metric_of

_COLOUR, _MARKER = "_colour", "_marker"
_MARGIN = 0.05  # of the span of all points and bars
_BARS: dict[str, Any] = {"fmt": "none", "elinewidth": 0.9, "capsize": 2, "alpha": 0.7, "zorder": 1}


def draw_comparison(
    table: pd.DataFrame, rows: Sequence[str], columns: Sequence[str], title: str, note: str
) -> Figure:
    """Draw the measured over the published number of each cell that the paper has one for.

    Parameters
    ----------
    table : pandas.DataFrame
        What `summarise` returns for an experiment with a published counterpart.
    rows, columns : sequence of str
        The table's axes: `line_axis(rows)` gives the colours, the values of all others the markers.
    title, note : str
        What stands above and below the figure.

    Raises
    ------
    FedstageError
        If the paper has no number for any cell.
    """
    shown = table[table[PUBLISHED].notna()] if is_compared(table) else table.head(0)
    if shown.empty:
        raise FedstageError(f"{title}: no cell has a published number, at least one is required")
    colours = line_axis(rows)
    others = [axis for axis in (*rows, *columns) if axis != colours and _varies(table, axis)]
    shown = _labelled(shown, colours, others)
    palette = colours_of(list(shown[_COLOUR].unique()))
    markers = dict(zip(shown[_MARKER].unique(), cycle(MARKERS), strict=False))
    with style():
        beside = 0.4 + 0.08 * max(map(len, [*palette, *markers]))
        figure, (axes,) = facet_grid(1, 1, (4.6, 4.4), beside)
        _draw(axes, shown, palette, markers)
        set_legend(figure, colours, _handles(palette, markers, others))
        set_title(figure, title)
        set_note(figure, note)
    return figure


def _draw(
    axes: Axes, table: pd.DataFrame, palette: dict[str, Any], markers: dict[str, str]
) -> None:
    metric = metric_of(table)
    for colour, cells in table.groupby(_COLOUR, sort=False):
        axes.errorbar(
            cells[PUBLISHED],
            cells[metric],
            xerr=cells[PUBLISHED_STD],
            yerr=cells["std"],
            ecolor=palette[str(colour)],
            **_BARS,
        )
    sns.scatterplot(
        table,
        x=PUBLISHED,
        y=metric,
        hue=_COLOUR,
        palette=palette,
        style=_MARKER,
        markers=markers,
        s=45,
        legend=False,
        ax=axes,
    )
    axes.axline((0, 0), slope=1, color="0.4", linestyle="--", linewidth=1, zorder=0)
    limits = _limits(table)
    axes.set(xlim=limits, xlabel=f"Published {METRICS[metric]} (%)")
    axes.set(ylim=limits, ylabel=f"Measured {METRICS[metric]} (%)", aspect="equal")


def _limits(table: pd.DataFrame) -> tuple[float, float]:
    """Return limits that hold all points and bars of both axes, which have the same scale."""
    pairs = ((PUBLISHED, PUBLISHED_STD), (metric_of(table), "std"))
    ends = [table[mean] + sign * table[std].fillna(0.0) for mean, std in pairs for sign in (-1, 1)]
    low, high = min(end.min() for end in ends), max(end.max() for end in ends)
    margin = _MARGIN * (high - low) or 1.0
    return low - margin, high + margin


def _labelled(table: pd.DataFrame, colours: str, others: Sequence[str]) -> pd.DataFrame:
    points = table[list(others)].itertuples(index=False, name=None)
    labels = [join_labels(others, point) for point in points] if others else ""
    return table.assign(
        **{_COLOUR: [show_value(value) for value in table[colours]], _MARKER: labels}
    )


def _handles(
    palette: dict[str, Any], markers: dict[str, str], others: Sequence[str]
) -> list[Line2D]:
    point: dict[str, Any] = {"linestyle": "", "markeredgecolor": "white"}
    handles = [
        Line2D([], [], color=colour, marker="o", label=name, **point)
        for name, colour in palette.items()
    ]
    if others:
        handles += [
            Line2D([], [], color="0.4", marker=marker, label=label, **point)
            for label, marker in markers.items()
        ]
    return [
        *handles,
        Line2D([], [], color="0.4", linestyle="--", linewidth=1, label="as published"),
    ]


def _varies(table: pd.DataFrame, axis: str) -> bool:
    return bool(table[axis].nunique(dropna=False) > 1)
