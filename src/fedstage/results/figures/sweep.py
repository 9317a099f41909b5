"""A metric over the values of an axis: numbers of clients, shares of the data, learning rates."""

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedstage.results.figures.style import (
    MARKERS,
    Colour,
    colours_of,
    facet_columns,
    facet_grid,
    set_axis_labels,
    set_legend,
    set_note,
    set_title,
    style,
)
from fedstage.results.tables.labels import head_of, join_labels, show_value
from fedstage.results.tables.runs import PUBLISHED
from fedstage.results.tables.summary import is_compared, metric_of

_LINE, _FACET = "_line", "_facet"
_ASIDE = 0.02  # of the distance between values
_MEASURED: dict[str, Any] = {"markersize": 6, "linewidth": 1.5, "capsize": 2, "elinewidth": 1.0}
_REPORTED: dict[str, Any] = {"linestyle": "--", "linewidth": 1.0, "alpha": 0.7}


def draw_sweep(
    table: pd.DataFrame,
    over: str,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    note: str,
) -> Figure:
    """Draw the table's metric over the values of an axis, and what a paper reports as dashed lines.

    Parameters
    ----------
    table : pandas.DataFrame
        What `summarise` returns.
    over : str
        The axis of the table whose values stand side by side, in the table's order.
    rows, columns : sequence of str
        The table's axes: the values of the other rows are lines, those of the other columns facets.
    title, note : str
        What stands above and below the figure.
    """
    lines, across = _others(rows, over), _others(columns, over)
    cells = table.to_dict("records")
    shown = table.assign(
        **{
            over: [show_value(cell[over]) for cell in cells],
            _LINE: [", ".join(show_value(cell[axis]) for axis in lines) for cell in cells],
            _FACET: [join_labels(across, [cell[axis] for axis in across]) for cell in cells],
        }
    )
    places = list(dict.fromkeys(shown[over]))
    colours = colours_of(list(dict.fromkeys(shown[_LINE])))
    facets = list(dict.fromkeys(shown[_FACET]))
    with style():
        beside = 0.7 + 0.09 * max(map(len, colours))
        size = (4.8, 3.4) if len(facets) == 1 else (3.2, 2.8)
        side = facet_columns(len(facets))
        figure, grid = facet_grid(len(facets), side, size, beside)
        for axes, facet in zip(grid, facets, strict=True):
            axes.set_title(facet)
            _draw(axes, shown[shown[_FACET] == facet], over, places, colours)
        set_axis_labels(grid, side, over, head_of(metric_of(table)))
        if any(colours):
            set_legend(figure, ", ".join(lines), _handles(colours, table))
        set_title(figure, title)
        set_note(figure, note)
    return figure


def _others(axes: Sequence[str], over: str) -> list[str]:
    return [axis for axis in axes if axis != over]


def _draw(
    axes: Axes, cells: pd.DataFrame, over: str, places: Sequence[str], colours: dict[str, Colour]
) -> None:
    metric = metric_of(cells)
    for number, (name, colour, marker) in enumerate(_looks(colours)):
        line = cells[cells[_LINE] == name]
        if line.empty:
            continue
        aside = _ASIDE * (number - (len(colours) - 1) / 2)  # else bars hide one another
        x = [places.index(value) + aside for value in line[over]]
        axes.errorbar(x, line[metric], line["std"], color=colour, marker=marker, **_MEASURED)
        if is_compared(cells) and line[PUBLISHED].notna().any():
            axes.plot(x, line[PUBLISHED], color=colour, **_REPORTED)
    axes.set_xticks(range(len(places)), places)
    axes.set_xlim(-0.3, len(places) - 0.7)


def _looks(colours: dict[str, Colour]) -> list[tuple[str, Colour, str]]:
    """Return name, colour and marker of each line."""
    markers = zip(colours.items(), cycle(MARKERS), strict=False)
    return [(name, colour, marker) for (name, colour), marker in markers]


def _handles(colours: dict[str, Colour], table: pd.DataFrame) -> list[Line2D]:
    handles = [
        Line2D([], [], color=colour, marker=marker, label=name)
        for name, colour, marker in _looks(colours)
    ]
    if is_compared(table) and table[PUBLISHED].notna().any():
        handles.append(Line2D([], [], color="0.4", label="as published", **_REPORTED))
    return handles
