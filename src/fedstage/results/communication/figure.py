"""Accuracy against what one client has sent and received (FENS, Figures 3 and 8).

Methods with rounds are curves, the others points; a facet a point of the columns' axes.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from statistics import mean, stdev
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from fedstage.results.communication.runs import RunTraffic
from fedstage.results.figures.style import (
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
from fedstage.results.tables.labels import head_of, human_bytes, join_labels, show_value
from fedstage.results.tables.runs import SEED
from fedstage.settings.scores import Axis, Metric

_MARKERS = ("o", "s", "^", "D", "v", "X", "<", ">", "p", "h")
_WIDE = 30.0  # quotient of bytes from which on powers of ten are enough as labels
_NARROW = 2.0  # quotient below which the axis is made wider than what it shows
_BAND: dict[str, Any] = {"alpha": 0.18, "linewidth": 0}
_LINE_WIDTH = 1.5

#: Bytes, and the mean and deviation of a score over seeds.
Point = tuple[float, float, float]


def draw_communication(
    runs: Sequence[RunTraffic],
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    metric: Metric = "top1_accuracy",
) -> Figure:
    """Draw top-1 accuracy, or another metric, over the bytes that one client has moved.

    Parameters
    ----------
    runs : sequence of RunTraffic
        Of all seeds.
    rows, columns : sequence of str
        The table's axes: the rows give curves and points, the columns facets.
    title : str
        Stands above the figure.
    metric : str
        What is drawn.
    """
    names = list(dict.fromkeys(_name(run, rows) for run in runs))
    facets = list(dict.fromkeys(_facet(run, columns) for run in runs))
    looks = _looks(runs, rows, names)
    size = (4.8, 3.4) if len(facets) == 1 else (3.2, 2.8)
    with style():
        across = facet_columns(len(facets))
        figure, grid = facet_grid(len(facets), across, size, 0.9 + 0.09 * max(map(len, names)))
        for axes, facet in zip(grid, facets, strict=True):
            axes.set_title(facet)
            for name in names:
                cell = [
                    run for run in runs if (_name(run, rows), _facet(run, columns)) == (name, facet)
                ]
                if cell:
                    _draw(axes, cell, *looks[name])
        _scale(grid, runs)
        set_axis_labels(grid, across, "Bytes sent and received by a client", head_of(metric))
        shown = {name: [run for run in runs if _name(run, rows) == name] for name in names}
        set_legend(figure, ", ".join(rows), _handles(shown, looks))
        set_title(figure, title)
        set_note(figure, _note(runs))
    return figure


def _looks(
    runs: Sequence[RunTraffic], rows: Sequence[str], names: Sequence[str]
) -> dict[str, tuple[Colour, str]]:
    """Return a colour for each name, and a marker for each of those that are points."""
    single = {_name(run, rows) for run in runs if len(run.course) == 1}
    markers = dict(zip([name for name in names if name in single], cycle(_MARKERS), strict=False))
    return {name: (colour, markers.get(name, "")) for name, colour in colours_of(names).items()}


def _name(run: RunTraffic, rows: Sequence[str]) -> str:
    return ", ".join(show_value(run.settings[axis]) for axis in rows)


def _facet(run: RunTraffic, columns: Sequence[str]) -> str:
    values: list[Axis] = [run.settings[axis] for axis in columns]
    return join_labels(columns, values)


def course(runs: Iterable[RunTraffic]) -> list[Point]:
    """Return the points of runs that differ in their seed, round by round.

    Raises
    ------
    ValueError
        If they were evaluated in different rounds.
    """
    points = []
    for reached in zip(*(run.course for run in runs), strict=True):
        scores = [one.score for one in reached]
        moved = mean(one.up + one.down for one in reached)
        points.append((moved, mean(scores), stdev(scores) if len(scores) > 1 else 0.0))
    return points


def _draw(axes: Axes, runs: Sequence[RunTraffic], colour: Colour, marker: str) -> None:
    points = course(runs)
    moved, scores, spread = zip(*points, strict=True)
    if not runs[0].communicates:
        _draw_level(axes, scores[-1], spread[-1], colour)
    elif len(points) == 1:
        if any(spread):
            bars: dict[str, Any] = {"elinewidth": 1.2, "capsize": 2, "zorder": 2}
            axes.errorbar(moved, scores, spread, fmt="none", ecolor=colour, **bars)
        axes.plot(moved, scores, color=colour, marker=marker, **_POINT)
    else:
        low = [score - deviation for score, deviation in zip(scores, spread, strict=True)]
        high = [score + deviation for score, deviation in zip(scores, spread, strict=True)]
        axes.plot(moved, scores, color=colour, linewidth=_LINE_WIDTH)
        axes.fill_between(moved, low, high, color=colour, **_BAND)


_POINT: dict[str, Any] = {
    "linestyle": "",
    "markersize": 8,
    "markeredgecolor": "white",
    "zorder": 3,
}


def _draw_level(axes: Axes, score: float, deviation: float, colour: Colour) -> None:
    """Draw what moves nothing as a dashed horizontal line."""
    axes.axhline(score, color=colour, linestyle="--", linewidth=_LINE_WIDTH)
    axes.axhspan(score - deviation, score + deviation, color=colour, **_BAND)


def _scale(grid: Sequence[Axes], runs: Iterable[RunTraffic]) -> None:
    """Make the shared axis of bytes logarithmic, labelled so that there are some labels."""
    moved = [one.up + one.down for run in runs if run.communicates for one in run.course]
    narrow = not moved or max(moved) < _WIDE * min(moved)
    grid[0].set_xscale("log")
    if moved and max(moved) < _NARROW * min(moved):  # else a label would stand there many times
        grid[0].set_xlim(min(moved) / _NARROW, max(moved) * _NARROW)
    for axes in grid:
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda count, _: _bytes(count)))
        axes.xaxis.set_minor_formatter(NullFormatter())


def _bytes(count: float) -> str:
    return human_bytes(round(count)).replace(".0", "")


def _handles(
    shown: Mapping[str, Sequence[RunTraffic]], looks: Mapping[str, tuple[Colour, str]]
) -> list[Line2D]:
    return [_handle(name, runs[0], *looks[name]) for name, runs in shown.items()]


def _handle(name: str, run: RunTraffic, colour: Colour, marker: str) -> Line2D:
    if run.communicates and len(run.course) == 1:
        return Line2D([], [], color=colour, marker=marker, label=name, **_POINT)
    kind: Literal["-", "--"] = "-" if run.communicates else "--"
    return Line2D([], [], color=colour, linestyle=kind, linewidth=_LINE_WIDTH, label=name)


def _note(runs: Sequence[RunTraffic]) -> str:
    seeds = len({run.settings[SEED] for run in runs})
    note = "Curves: rounds; points: methods that are evaluated once, at the end."
    if not all(run.communicates for run in runs):
        note += " Dashed: nothing is sent."
    if seeds == 1:
        return f"{note} A single seed."
    return f"{note} Mean over {seeds} seeds; bands and bars: ± 1 standard deviation."
