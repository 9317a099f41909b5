"""A metric over the values of an axis: numbers of clients, shares of the data, learning rates."""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedstage.results.figures.looks import GREY, NONE, Look, line_handle, looks_of
from fedstage.results.figures.panels import ALONE, BESIDE
from fedstage.results.figures.placing import FACET, LINE, line_axis, placed, title_of_lines
from fedstage.results.figures.seeds import draw_dot, explain_seeds, spread_of_cell
from fedstage.results.figures.style import (
    EM,
    SMALL,
    Facets,
    axes_width,
    facet_columns,
    figure_width,
    style,
)
from fedstage.results.tables.labels import head_of, show_value
from fedstage.results.tables.runs import PUBLISHED, PUBLISHED_STD
from fedstage.results.tables.summary import is_compared, metric_of

_ASIDE, _APART = 0.05, 0.3  # maximum distance between lines, and of all lines, in steps of the axis


@style()
def draw_sweep(
    table: pd.DataFrame,
    over: str,
    rows: Sequence[str],
    columns: Sequence[str],
    given: Mapping[str, Look] = NONE,
) -> Figure:
    """Draw a table's metric over the values of the axis `over`, published numbers as open points.

    Lines are the values of `line_axis(rows)`; all other axes that vary give the facets. `given` are
    looks of lines by their labels.
    """
    others = [axis for axis in rows if axis != over]
    axis = line_axis(others) if others else ""
    table = placed(table, axis, [name for name in (*others, *columns) if name != over])
    table = table.assign(**{over: [show_value(value) for value in table[over]]})
    places = list(dict.fromkeys(table[over]))
    looks = looks_of(table[LINE].unique(), given)
    labels = list(dict.fromkeys(table[FACET]))
    handles = [line_handle(name, look) for name, look in looks.items() if name]
    if _is_published(table):
        handles.append(Line2D([], [], label="as published", **GREY.hollow))
    height = ALONE if len(labels) == 1 else BESIDE
    longest = max(map(len, places))
    wide = axes_width(figure_width(facet_columns(len(labels))), facet_columns(len(labels)))
    turned = len(places) * (longest + 1) * SMALL * EM > wide
    more = longest * SMALL * EM if turned else 0.0
    facets = Facets(labels, height, handles, title_of_lines(axis) if axis else "", more=more)
    for axes, label in zip(facets.grid, labels, strict=True):
        _draw(axes, table[table[FACET] == label], over, places, looks)
        if turned:
            axes.tick_params(axis="x", labelrotation=90)
    facets.label_axes(over, head_of(metric_of(table)))
    return facets.figure


def describe_sweep(table: pd.DataFrame) -> str:
    """Return the caption's text on the points of `draw_sweep`."""
    seeds = explain_seeds(table["seeds"], curves=False)
    reported = " Open: published, with the deviation that the paper reports." * _is_published(table)
    return f"Last evaluated round. {seeds}{reported}"


def _is_published(table: pd.DataFrame) -> bool:
    return is_compared(table) and bool(table[PUBLISHED].notna().any())


def _draw(
    axes: Axes, cells: pd.DataFrame, over: str, places: Sequence[str], looks: Mapping[str, Look]
) -> None:
    apart = min(_ASIDE, _APART / len(looks))
    for number, (name, look) in enumerate(looks.items()):
        aside = apart * (number - (len(looks) - 1) / 2)  # otherwise bars hide one another
        line = cells[cells[LINE] == name].to_dict("records")
        x = [places.index(cell[over]) + aside for cell in line]
        axes.plot(x, [cell[metric_of(cells)] for cell in line], **look.line)
        for at, cell in zip(x, line, strict=True):
            _draw_cell(axes, at, cell, metric_of(cells), look)
    axes.set_xticks(range(len(places)), places)
    axes.set_xlim(-0.4, len(places) - 0.6)
    axes.grid(visible=False, axis="x")


def _draw_cell(axes: Axes, at: float, cell: Mapping[Any, Any], metric: str, look: Look) -> None:
    draw_dot(axes, at, spread_of_cell(cell[metric], cell["std"], cell["seeds"]), look)
    if not pd.isna(cell.get(PUBLISHED, nan)):
        published = spread_of_cell(cell[PUBLISHED], cell[PUBLISHED_STD], nan)
        draw_dot(axes, at, published, look, hollow=True)
