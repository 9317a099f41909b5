"""A metric over the values of an axis: numbers of clients, shares of the data, learning rates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, log10, nan
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedstage.results.figures.looks import GREY, NONE, Look, line_handle, looks_of
from fedstage.results.figures.placing import (
    ALONE,
    BESIDE,
    FACET,
    LINE,
    line_axis,
    placed,
    title_of_lines,
)
from fedstage.results.figures.seeds import draw_dot, explain_seeds, spread_of_cell
from fedstage.results.figures.style import (
    EM,
    RULE,
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

# --- the scale ------------------------------------------------------------------------------------

MARGIN = 0.4  # steps before the first value, and after the last one
_HIGH = 1.3  # heights of a turned label from one to the next
_WIDEST = 10  # factor between the least and the largest positive value of a linear scale


@dataclass(frozen=True)
class Scale:
    """The place of each value on an axis, in its mean steps; the first one is at 0.

    If the scale is `broken`, the first value is a zero, which a logarithmic scale does not have.
    """

    places: Mapping[str, float]
    broken: bool = False

    @property
    def nearest(self) -> float:
        """The least distance between two values, in steps."""
        places = self.places.values()
        return min((after - before for before, after in pairwise(places)), default=1.0)

    def labels(self, wide: float) -> tuple[list[str], bool]:
        """Return the labels of the ticks on an axis of some inches, and whether they are turned.

        Where even turned labels would overlap, some are empty.
        """
        step = wide / (max(self.places.values()) + 2 * MARGIN)
        room = (max(map(len, self.places)) + 1) * SMALL * EM / step
        if self.nearest >= room:
            return list(self.places), False
        last, labels = -inf, []
        for name, place in self.places.items():
            fits = place - last >= _HIGH * SMALL / 72 / step
            labels.append(name if fits else "")
            last = place if fits else last
        return labels, True


def scale_of(values: pd.Series) -> Scale:
    """Return a scale with numbers by size, or other values side by side, as they first appear.

    It is logarithmic for positive numbers that span a factor of ten or more, also after a zero.
    """
    every = list(values.unique())
    is_number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if not is_number or values.isna().any():
        return Scale({show_value(value): float(place) for place, value in enumerate(every)})
    every.sort()
    positive = [value for value in every if value > 0]
    logarithmic = every[0] >= 0 and len(positive) > 1 and positive[-1] >= _WIDEST * positive[0]
    broken = logarithmic and every[0] == 0
    at = [log10(value) for value in positive] if logarithmic else [float(value) for value in every]
    step = (at[-1] - at[0]) / max(1, len(at) - 1) or 1.0
    places = [*([0.0] if broken else []), *(broken + (place - at[0]) / step for place in at)]
    return Scale(dict(zip(map(show_value, every), places, strict=True)), broken)


# --- the figure -----------------------------------------------------------------------------------

_ASIDE = 0.05  # maximum distance between lines, in steps of the axis
_APART = 0.3  # maximum distance of all lines, as a share of the distance of the nearest values


@style()
def draw_sweep(
    table: pd.DataFrame,
    over: str,
    rows: Sequence[str],
    columns: Sequence[str],
    given: Mapping[str, Look] = NONE,
) -> Figure:
    """Draw a table's metric over the values of the axis `over`, published numbers as open points.

    Numbers are placed by size, on a logarithmic scale if they are positive and span a factor of ten
    or more; a zero is then apart. Other values are side by side. Lines are the values of
    `line_axis(rows)`; all other axes that vary give the facets. `given` are looks of lines by their
    labels.
    """
    others = [axis for axis in rows if axis != over]
    axis = line_axis(others) if others else ""
    table = placed(table, axis, [name for name in (*others, *columns) if name != over])
    scale = scale_of(table[over])
    table = table.assign(**{over: [show_value(value) for value in table[over]]})
    looks = looks_of(table[LINE].unique(), given)
    labels = list(dict.fromkeys(table[FACET]))
    handles = [line_handle(name, look) for name, look in looks.items() if name]
    if _is_published(table):
        handles.append(Line2D([], [], label="as published", **GREY.hollow))
    height = ALONE if len(labels) == 1 else BESIDE
    wide = axes_width(figure_width(facet_columns(len(labels))), facet_columns(len(labels)))
    ticks, turned = scale.labels(wide)
    more = max(map(len, ticks)) * SMALL * EM if turned else 0.0
    facets = Facets(labels, height, handles, title_of_lines(axis) if axis else "", more=more)
    for axes, label in zip(facets.grid, labels, strict=True):
        _draw(axes, table[table[FACET] == label], over, scale, looks)
        axes.set_xticks(list(scale.places.values()), ticks)
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
    axes: Axes, cells: pd.DataFrame, over: str, scale: Scale, looks: Mapping[str, Look]
) -> None:
    apart = min(_ASIDE, _APART * scale.nearest / len(looks))
    for number, (name, look) in enumerate(looks.items()):
        aside = apart * (number - (len(looks) - 1) / 2)  # otherwise bars hide one another
        line = cells[cells[LINE] == name].to_dict("records")
        line.sort(key=lambda cell: scale.places[cell[over]])
        x = [scale.places[cell[over]] + aside for cell in line]
        axes.plot(x, [cell[metric_of(cells)] for cell in line], **look.line)
        for at, cell in zip(x, line, strict=True):
            _draw_cell(axes, at, cell, metric_of(cells), look)
    axes.set_xlim(-MARGIN, max(scale.places.values()) + MARGIN)
    axes.grid(visible=False, axis="x")
    if scale.broken:
        axes.axvline(0.5, **RULE)


def _draw_cell(axes: Axes, at: float, cell: Mapping[Any, Any], metric: str, look: Look) -> None:
    draw_dot(axes, at, spread_of_cell(cell[metric], cell["std"], cell["seeds"]), look)
    if not pd.isna(cell.get(PUBLISHED, nan)):
        published = spread_of_cell(cell[PUBLISHED], cell[PUBLISHED_STD], nan)
        draw_dot(axes, at, published, look, hollow=True)
