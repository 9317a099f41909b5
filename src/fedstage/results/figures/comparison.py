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
from fedstage.results.figures.accuracy import line_axis, varying_axes
from fedstage.results.figures.style import MARKERS, Facets, colours_of, style
from fedstage.results.tables.labels import METRICS, join_points, show_value
from fedstage.results.tables.runs import PUBLISHED, PUBLISHED_STD
from fedstage.results.tables.summary import is_compared, metric_of

_COLOUR, _MARKER = "_colour", "_marker"
_MARGIN = 0.05  # of the span of all points and bars
_BARS: dict[str, Any] = {"fmt": "none", "elinewidth": 0.9, "capsize": 2, "alpha": 0.7, "zorder": 1}


@style()
def draw_comparison(
    table: pd.DataFrame, rows: Sequence[str], columns: Sequence[str], title: str, note: str
) -> Figure:
    """Draw the measured over the published number of each cell of a table that has both.

    Of the table's axes `line_axis(rows)` has the colours, all others the markers.

    Raises
    ------
    FedstageError
        If no cell has a published number.
    """
    shown = table[table[PUBLISHED].notna()] if is_compared(table) else table.head(0)
    if shown.empty:
        raise FedstageError(f"{title}: no cell has a published number, at least one is required")
    colours = line_axis(rows)
    others = [axis for axis in varying_axes(table, [*rows, *columns]) if axis != colours]
    names = [show_value(value) for value in shown[colours]]
    shown = shown.assign(**{_COLOUR: names, _MARKER: join_points(shown, others)})
    palette = colours_of(list(shown[_COLOUR].unique()))
    markers = dict(zip(shown[_MARKER].unique(), cycle(MARKERS), strict=False))
    facets = Facets([""], (4.6, 4.4), 0.4 + 0.08 * max(map(len, [*palette, *markers])))
    _draw(facets.grid[0], shown, palette, markers)
    handles = _handles(palette, markers if others else {})
    return facets.annotate(title, note=note, legend=colours, handles=handles)


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
    """Return limits around all points and bars, the same for both axes."""
    pairs = ((PUBLISHED, PUBLISHED_STD), (metric_of(table), "std"))
    ends = [table[mean] + sign * table[std].fillna(0.0) for mean, std in pairs for sign in (-1, 1)]
    low, high = min(end.min() for end in ends), max(end.max() for end in ends)
    margin = _MARGIN * (high - low) or 1.0
    return low - margin, high + margin


def _handles(palette: dict[str, Any], markers: dict[str, str]) -> list[Line2D]:
    looks = [(name, colour, "o") for name, colour in palette.items()]
    looks += [(name, "0.4", marker) for name, marker in markers.items()]
    points = [
        Line2D([], [], color=colour, marker=marker, label=name, ls="", markeredgecolor="white")
        for name, colour, marker in looks
    ]
    line = Line2D([], [], color="0.4", linestyle="--", linewidth=1, label="as published")
    return [*points, line]
