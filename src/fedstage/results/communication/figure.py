"""Accuracy against the bytes that one client has sent and received (FENS, Figures 3 and 8).

Methods with rounds are curves, others points; a facet a point of the column axes.
"""

from collections.abc import Iterable, Sequence
from itertools import cycle
from statistics import mean
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from fedstage.results.communication.runs import RunTraffic
from fedstage.results.figures.style import BAND, Colour, Facets, colours_of, draw_level, style
from fedstage.results.metrics import spread
from fedstage.results.runs_file import SEED
from fedstage.results.tables.labels import head_of, human_bytes, join_labels, show_value
from fedstage.settings.scores import Metric

_MARKERS = ("o", "s", "^", "D", "v", "X", "<", ">", "p", "h")
_WIDE = 30.0  # ratio of bytes from which on labels at powers of ten are enough
_NARROW = 2.0  # ratio below which the axis is widened
_LINE_WIDTH = 1.5
_POINT: dict[str, Any] = {
    "linestyle": "",
    "markersize": 8,
    "markeredgecolor": "white",
    "zorder": 3,
}
_BARS: dict[str, Any] = {"fmt": "none", "elinewidth": 1.2, "capsize": 2, "zorder": 2}

#: Bytes, and the mean and deviation of a score over seeds.
Point = tuple[float, float, float]


@style()
def draw_communication(
    runs: Sequence[RunTraffic],
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    metric: Metric = "top1_accuracy",
) -> Figure:
    """Draw top-1 accuracy, or another metric, over the bytes that one client has moved.

    The table's row axes have curves and points, its column axes facets.
    """
    named: dict[str, list[RunTraffic]] = {}
    cells: dict[str, dict[str, list[RunTraffic]]] = {}
    for run in runs:
        name = ", ".join(show_value(run.settings[axis]) for axis in rows)
        label = join_labels(columns, [run.settings[axis] for axis in columns])
        named.setdefault(name, []).append(run)
        cells.setdefault(label, {}).setdefault(name, []).append(run)
    points = [name for name, same in named.items() if any(len(run.course) == 1 for run in same)]
    markers = dict(zip(points, cycle(_MARKERS), strict=False))
    colours = colours_of(list(named))
    size = (4.8, 3.4) if len(cells) == 1 else (3.2, 2.8)
    facets = Facets(list(cells), size, 0.9 + 0.09 * max(map(len, named)))
    for axes, by_name in zip(facets.grid, cells.values(), strict=True):
        for name in (name for name in named if name in by_name):
            _draw(axes, by_name[name], colours[name], markers.get(name, ""))
    _scale(facets.grid, runs)
    facets.label_axes("Bytes sent and received by a client", head_of(metric))
    handles = [
        _handle(name, same[0], colours[name], markers.get(name, "")) for name, same in named.items()
    ]
    return facets.annotate(title, note=_note(runs), legend=", ".join(rows), handles=handles)


def course(runs: Iterable[RunTraffic]) -> list[Point]:
    """Return the points of runs that differ in their seed only, round by round."""
    points = []
    for reached in zip(*(run.course for run in runs), strict=True):
        scores = [one.score for one in reached]
        moved = mean(one.moved for one in reached)
        points.append((moved, mean(scores), spread(scores) or 0.0))
    return points


def _draw(axes: Axes, runs: Sequence[RunTraffic], colour: Colour, marker: str) -> None:
    points = course(runs)
    moved, scores, deviations = zip(*points, strict=True)
    if not runs[0].communicates:
        draw_level(axes, scores[-1], deviations[-1], colour, _LINE_WIDTH)
    elif len(points) == 1:
        if any(deviations):
            axes.errorbar(moved, scores, deviations, ecolor=colour, **_BARS)
        axes.plot(moved, scores, color=colour, marker=marker, **_POINT)
    else:
        low = [score - deviation for _, score, deviation in points]
        high = [score + deviation for _, score, deviation in points]
        axes.plot(moved, scores, color=colour, linewidth=_LINE_WIDTH)
        axes.fill_between(moved, low, high, color=colour, **BAND)


def _scale(grid: Sequence[Axes], runs: Iterable[RunTraffic]) -> None:
    """Make the shared axis of bytes logarithmic, with enough labels."""
    moved = [one.moved for run in runs if run.communicates for one in run.course]
    narrow = not moved or max(moved) < _WIDE * min(moved)
    grid[0].set_xscale("log")
    if moved and max(moved) < _NARROW * min(moved):  # else a label would be repeated many times
        grid[0].set_xlim(min(moved) / _NARROW, max(moved) * _NARROW)
    for axes in grid:
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda count, _: _bytes(count)))
        axes.xaxis.set_minor_formatter(NullFormatter())


def _bytes(count: float) -> str:
    return human_bytes(round(count)).replace(".0", "")


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
