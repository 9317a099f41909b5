"""The placing of data in figures: the line and facet of each row, and a scale of bytes."""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from fedstage.results.figures.style import RULE
from fedstage.results.tables.labels import METHOD, axis_label, human_bytes, name_points, show_value

# --- panels ---------------------------------------------------------------------------------------

#: Curves that share one panel.
TOGETHER = 5
#: The most panels of one curve each, and the most points that are distinguished in one panel.
MOST_ALONE = 12
ALONE, BESIDE = 2.1, 1.55  # inches of height of a single panel, and of one of several
_PAGE_HEIGHT = 7.5  # maximum inches that panels take


class Panel(NamedTuple):
    """A facet, the curves that are in colour there, and the title; others are in grey."""

    facet: str
    names: Sequence[str]
    title: str


def panels_of(facets: Sequence[str], names: Sequence[str]) -> list[Panel]:
    """Return a panel for each facet, or several if there are more than five curves.

    With a single facet, each panel has one curve and its name if there are few enough curves.
    Otherwise panels have about the same number of curves, up to five.
    """
    if len(names) <= TOGETHER:
        return [Panel(facet, names, facet) for facet in facets]
    if len(facets) == 1 and len(names) <= MOST_ALONE:
        return [Panel(facets[0], [name], name) for name in names]
    groups = -(-len(names) // TOGETHER)
    size = -(-len(names) // groups)
    parts = [names[start : start + size] for start in range(0, len(names), size)]
    return [
        Panel(facet, part, facet or f"{part[0]} to {part[-1]}")
        for facet in facets
        for part in parts
    ]


def panel_height(panels: int, across: int = 3) -> float:
    """Return the height of each of some panels in inches, so that they fit a page."""
    return ALONE if panels == 1 else min(BESIDE, _PAGE_HEIGHT / -(-panels // across) - 0.4)


#: Columns that `placed` adds to a frame.
LINE, FACET = "_line", "_facet"
PLACE = 0.085  # inches between points that are side by side
_MOST_ACROSS, _MOST_DOWN = 4, 6  # facets of a grid that fit a page
_LABELS = 5  # number of labels of bytes that fit an axis


def line_axis(rows: Sequence[str]) -> str:
    """Return the axis of the lines, by its key or label: the method, or else the first row axis."""
    return next((axis for axis in rows if axis in (METHOD, axis_label(METHOD))), rows[0])


def title_of_lines(axis: str) -> str:
    """Return the title of a legend of lines: none for methods, whose names suffice."""
    return "" if axis in (METHOD, axis_label(METHOD)) else axis


def placed(frame: pd.DataFrame, line: str, axes: Sequence[str]) -> pd.DataFrame:
    """Add the line and the facet of each row.

    The line is the row's value on the axis `line`, if that has a name; the facet has its values on
    all other axes that vary.
    """
    lines = [show_value(value) for value in frame[line]] if line else ""
    return frame.assign(**{LINE: lines, FACET: name_points(frame, _varying(frame, line, axes))})


def grid_columns(frame: pd.DataFrame, line: str, axes: Sequence[str]) -> int | None:
    """Return how many facets stand side by side so that they form a grid of two axes.

    Facets, as in `placed`, are in the order of their first rows. None if they do not vary on
    exactly two axes, if one before the last is missing, or if the grid would be too large.
    """
    varying = _varying(frame, line, axes)
    if len(varying) != 2:
        return None
    places = list(
        dict.fromkeys(zip(*(name_points(frame, [axis]) for axis in varying), strict=True))
    )
    for down, across in ((0, 1), (1, 0)):  # the axis that changes fastest is across
        heads = (dict.fromkeys(place[axis] for place in places) for axis in (down, across))
        rows, columns = map(list, heads)
        order = [(place[down], place[across]) for place in places]
        is_grid = order == list(product(rows, columns))[: len(order)]
        if is_grid and len(columns) <= _MOST_ACROSS and len(rows) <= _MOST_DOWN:
            return len(columns)
    return None


def _varying(frame: pd.DataFrame, line: str, axes: Sequence[str]) -> list[str]:
    return [axis for axis in axes if axis != line and frame[axis].nunique(dropna=False) > 1]


def scale_bytes(
    axes: Axes, start: float, low: float, high: float, wide: float, silent: float | None
) -> None:
    """Make the x axis logarithmic, with labelled bytes from `low` to `high`.

    Parameters
    ----------
    start : float
        Where the axis begins, which may be before `low`.
    wide : float
        The ratio of the ends above which labels at powers of ten are enough.
    silent : float, optional
        The place of points without bytes, before `low`, where a line divides them from others.
    """
    axes.set_xscale("log")
    axes.set_xlim(start, high)
    apart = (high / start) ** (1 / _LABELS)
    ticks = _ticks(low, high, apart, powers=high > wide * low)
    names = [human_bytes(round(tick)).replace(".0", "") for tick in ticks]
    if silent is not None:
        ticks, names = [silent, *ticks], ["none", *names]
        axes.axvline(low, **RULE)
    axes.set_xticks(ticks, names)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(visible=False, axis="x")


def _ticks(low: float, high: float, apart: float, powers: bool) -> list[float]:
    """Return round numbers from `low` to `high`, each at least a factor `apart` above another.

    Narrower scales have finer numbers, so that there are three of them if they fit.
    """
    digits: list[tuple[float, ...]] = [(1.0,)] if powers else []
    digits += [(1.0, 2.0, 5.0), tuple(map(float, range(1, 10)))]
    for locator in (*(LogLocator(subs=leading) for leading in digits), MaxNLocator(_LABELS)):
        every = [tick for tick in locator.tick_values(low, high) if low <= tick <= high]
        ticks = _apart(every, apart)
        if len(ticks) > 2:
            break
    return ticks


def _apart(ticks: Sequence[float], step: float) -> list[float]:
    """Return ticks without those that are less than a factor `step` above the one before."""
    kept: list[float] = []
    for tick in ticks:
        if not kept or tick >= step * kept[-1]:
            kept.append(tick)
    return kept


def side_by_side(names: Sequence[str], middle: float, step: float) -> dict[str, float]:
    """Return places around the `middle` of a logarithmic scale, a factor `step` apart."""
    return {name: middle * step ** (i - (len(names) - 1) / 2) for i, name in enumerate(names)}
