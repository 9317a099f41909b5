"""A metric over the values of an axis: numbers of clients, shares of the data, learning rates."""

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedstage.results.figures.style import MARKERS, Colour, Facets, colours_of, style
from fedstage.results.tables.labels import head_of, join_points, show_value
from fedstage.results.tables.runs import PUBLISHED
from fedstage.results.tables.summary import is_compared, metric_of

_LINE, _FACET = "_line", "_facet"
_ASIDE = 0.02  # of the distance between values
_MEASURED: dict[str, Any] = {"markersize": 6, "linewidth": 1.5, "capsize": 2, "elinewidth": 1.0}
_REPORTED: dict[str, Any] = {"linestyle": "--", "linewidth": 1.0, "alpha": 0.7}
#: Name, colour and marker of a line.
Look = tuple[str, Colour, str]


@style()
def draw_sweep(
    table: pd.DataFrame,
    over: str,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    note: str,
) -> Figure:
    """Draw a table's metric over the values of the axis `over`, published numbers as dashed lines.

    The other row axes have the lines, the other column axes the facets.
    """
    lines = [axis for axis in rows if axis != over]
    cells = table.to_dict("records")
    table = table.assign(
        **{
            over: [show_value(cell[over]) for cell in cells],
            _LINE: [", ".join(show_value(cell[axis]) for axis in lines) for cell in cells],
            _FACET: join_points(table, [axis for axis in columns if axis != over]),
        }
    )
    places = list(dict.fromkeys(table[over]))
    colours = colours_of(list(dict.fromkeys(table[_LINE])))
    markers = zip(colours.items(), cycle(MARKERS), strict=False)
    looks = [(name, colour, marker) for (name, colour), marker in markers]
    labels = list(dict.fromkeys(table[_FACET]))
    size = (4.8, 3.4) if len(labels) == 1 else (3.2, 2.8)
    facets = Facets(labels, size, 0.7 + 0.09 * max(map(len, colours)))
    for axes, label in zip(facets.grid, labels, strict=True):
        _draw(axes, table[table[_FACET] == label], over, places, looks)
    facets.label_axes(over, head_of(metric_of(table)))
    handles = _handles(looks, table) if any(colours) else []
    return facets.annotate(title, note=note, legend=", ".join(lines), handles=handles)


def _draw(
    axes: Axes, cells: pd.DataFrame, over: str, places: Sequence[str], looks: Sequence[Look]
) -> None:
    metric = metric_of(cells)
    for number, (name, colour, marker) in enumerate(looks):
        line = cells[cells[_LINE] == name]
        if line.empty:
            continue
        aside = _ASIDE * (number - (len(looks) - 1) / 2)  # else bars hide one another
        x = [places.index(value) + aside for value in line[over]]
        axes.errorbar(x, line[metric], line["std"], color=colour, marker=marker, **_MEASURED)
        if is_compared(cells) and line[PUBLISHED].notna().any():
            axes.plot(x, line[PUBLISHED], color=colour, **_REPORTED)
    axes.set_xticks(range(len(places)), places)
    axes.set_xlim(-0.3, len(places) - 0.7)


def _handles(looks: Sequence[Look], table: pd.DataFrame) -> list[Line2D]:
    handles = [
        Line2D([], [], color=colour, marker=marker, label=name) for name, colour, marker in looks
    ]
    if is_compared(table) and table[PUBLISHED].notna().any():
        handles.append(Line2D([], [], color="0.4", label="as published", **_REPORTED))
    return handles
