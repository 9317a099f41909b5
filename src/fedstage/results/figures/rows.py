"""Points in rows: one row per method, with its name next to it, so that nothing overlaps."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fedstage.results.figures.looks import GREY, Look
from fedstage.results.figures.placing import title_of_lines
from fedstage.results.figures.seeds import Spread, draw_dot
from fedstage.results.figures.style import SMALL, Facets

_ROW = 0.17  # inches
_ASIDE = 0.19  # of a row: measured points are this much above, published below
_EM = 0.6 / 72  # inches of a character of a name, for each point of its font


class Dot(NamedTuple):
    """A point of a facet and row, and its published counterpart, if any."""

    facet: str
    name: str
    measured: Spread
    published: Spread | None = None


def draw_rows(
    dots: Sequence[Dot],
    names: Sequence[str],
    looks: Mapping[str, Look],
    label: str,
    axis: str,
    across: int | None = None,
) -> Figure:
    """Draw points in rows, the first on top.

    Parameters
    ----------
    dots : sequence of Dot
        What to draw.
    names : sequence of str
        The rows, from top to bottom.
    looks : mapping of str to Look
        The look of each row.
    label : str
        The label of the x axis, with its unit.
    axis : str
        The axis of the table that the rows are values of.
    across : int, optional
        Number of facets side by side, by default as `Facets` has it.
    """
    facets = list(dict.fromkeys(dot.facet for dot in dots))
    compared = any(dot.published for dot in dots)
    handles = _handles() if compared else ()
    left = 0.35 + max(map(len, names)) * SMALL * _EM
    height = _ROW * (len(names) + 0.4)
    grid = Facets(facets, height, handles, across=across, left=left, share_x=False)
    for axes, facet in zip(grid.grid, facets, strict=True):
        _draw(axes, [dot for dot in dots if dot.facet == facet], list(names), looks)
    grid.label_axes(label, title_of_lines(axis))
    return grid.figure


def _draw(axes: Axes, dots: Sequence[Dot], names: Sequence[str], looks: Mapping[str, Look]) -> None:
    for dot in dots:
        row, look = names.index(dot.name), looks[dot.name]
        aside = _ASIDE if any(other.published for other in dots) else 0.0
        draw_dot(axes, row - aside, dot.measured, look, across=True)
        if dot.published:
            draw_dot(axes, row + aside, dot.published, look, across=True, hollow=True)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.margins(x=0.08)
    for row in range(1, len(names)):
        axes.axhline(row - 0.5, color="0.93", linewidth=0.5, zorder=0)


def _handles() -> tuple[Line2D, Line2D]:
    return (
        Line2D([], [], label="measured", **GREY.point),
        Line2D([], [], label="published", **GREY.hollow),
    )
