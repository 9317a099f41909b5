"""Accuracy against the bytes that one client has sent and received (FENS, Figures 3 and 8).

Methods with rounds are curves, others points; a facet a point of the other axes.
"""

from collections.abc import Mapping, Sequence
from math import isclose, log10
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from fedstage.results.communication.runs import RunTraffic
from fedstage.results.figures.accuracy import line_axis, title_of_lines, varying_axes
from fedstage.results.figures.looks import Look, line_handle, looks_of, point_handle
from fedstage.results.figures.seeds import draw_curve, draw_dot, explain_seeds, spread_of
from fedstage.results.figures.style import Facets, style
from fedstage.results.runs_file import SEED
from fedstage.results.tables.labels import head_of, human_bytes, name_points, show_value
from fedstage.settings.scores import Metric

_LINE, _FACET, _POINTS, _MOVED, _SCORE = "_line", "_facet", "_points", "_moved", "_score"
_SENDS = "_sends"
_ALONE, _BESIDE = 2.2, 1.6  # inches of height
_PLACE = 0.085  # inches between points that would hide one another
_WIDE = 30.0  # ratio of bytes from which on labels at powers of ten are enough
_NARROW = 2.0  # ratio below which the axis is widened
_SAME = 0.02  # relative difference of bytes that no eye sees
_RULE: dict[str, Any] = {"color": "0.75", "linewidth": 0.6, "zorder": 0}


@style()
def draw_communication(
    runs: Sequence[RunTraffic],
    rows: Sequence[str],
    columns: Sequence[str],
    metric: Metric = "top1_accuracy",
) -> Figure:
    """Draw top-1 accuracy, or another metric, over the bytes that one client has moved.

    Of the table's axes `line_axis(rows)` has curves and points, all others that vary the facets.
    Methods that send nothing stand before the scale. Points of as many bytes stand side by side.
    """
    axis = line_axis(rows)
    frame = frame_of(runs, axis, [*rows, *columns])
    looks = looks_of(list(frame[_LINE].unique()))
    curved = set(frame.loc[frame[_POINTS] > 1, _LINE])
    handles = [
        (line_handle if name in curved else point_handle)(name, look)
        for name, look in looks.items()
    ]
    labels = list(frame[_FACET].unique())
    height = _ALONE if len(labels) == 1 else _BESIDE
    facets = Facets(labels, height, handles, title_of_lines(axis))
    low, high = _limits(frame)
    silent = list(frame.loc[~frame[_SENDS], _LINE].unique())
    decades = log10(high / low) / max(facets.axes_width - _PLACE * (len(silent) + 1), 0.5)
    step = 10 ** (_PLACE * decades)  # between points, as a factor of bytes
    for axes, label in zip(facets.grid, labels, strict=True):
        _draw(axes, frame[frame[_FACET] == label], looks, step)
        _draw_silent(axes, frame[(frame[_FACET] == label) & ~frame[_SENDS]], looks, low, step)
    start = low / step ** (len(silent) + 1) if silent else low
    _scale(facets.grid, start, low, high * step)
    facets.label_axes("Bytes to and from a client", head_of(metric))
    return facets.figure


def describe_communication(
    runs: Sequence[RunTraffic], rows: Sequence[str], columns: Sequence[str]
) -> str:
    """Return what the caption says of the curves and points of `draw_communication`."""
    frame = frame_of(runs, line_axis(rows), [*rows, *columns])
    curves = bool((frame[_POINTS] > 1).any())
    text = "Curves: rounds. Points: methods that are evaluated once, at the end of training."
    if not frame[_SENDS].all():
        text += " Before the scale: methods that send nothing."
    counts = frame.groupby([_LINE, _FACET])[SEED].nunique()
    return f"{text} {explain_seeds(counts, curves)}"


def frame_of(runs: Sequence[RunTraffic], axis: str, axes: Sequence[str]) -> pd.DataFrame:
    """Return a row a run and point of its course: line, facet, seed, bytes moved, and score.

    Bytes are means over the seeds of a line and facet. The last point is all there is of runs that
    send nothing.

    Raises
    ------
    ValueError
        If runs that differ in their seed only are of different lengths.
    """
    places = pd.DataFrame([{one: run.settings[one] for one in axes} for run in runs])
    facets = name_points(places, [one for one in varying_axes(places, axes) if one != axis])
    rows = [
        {
            _LINE: show_value(run.settings[axis]),
            _FACET: facet,
            SEED: run.settings[SEED],
            "point": point,
            _POINTS: len(run.course) if run.communicates else 1,
            _SENDS: run.communicates,
            _MOVED: reached.moved,
            _SCORE: reached.score,
        }
        for run, facet in zip(runs, facets, strict=True)
        for point, reached in enumerate(run.course if run.communicates else run.course[-1:])
    ]
    frame = pd.DataFrame(rows)
    lengths = frame.groupby([_LINE, _FACET])[_POINTS].nunique()
    if (lengths > 1).any():
        raise ValueError(f"{lengths.idxmax()}: the course of one seed is shorter than another's")
    same = frame.groupby([_LINE, _FACET, "point"])[_MOVED]
    return frame.assign(**{_MOVED: same.transform("mean")})


def _limits(frame: pd.DataFrame) -> tuple[float, float]:
    """Return the limits of the scale of bytes."""
    moved = frame.loc[frame[_SENDS], _MOVED]
    if moved.empty:
        return 1.0, 10.0
    low, high = moved.min(), moved.max()
    margin = _NARROW if high < _NARROW * low else (high / low) ** 0.06
    return low / margin, high * margin


def _draw(axes: Axes, frame: pd.DataFrame, looks: Mapping[str, Look], step: float) -> None:
    """Draw what sends something."""
    names = list(frame.loc[frame[_POINTS] > 1, _LINE].unique())
    once = []
    for name, runs in frame[frame[_SENDS]].groupby(_LINE, sort=False):
        if runs[_POINTS].iloc[0] > 1:
            turn = (names.index(str(name)), len(names))
            draw_curve(axes, runs, _MOVED, _SCORE, looks[str(name)], turn)
        else:
            once.append((str(name), float(runs[_MOVED].iloc[0]), list(runs[_SCORE])))
    for place, (name, _, scores) in zip(dodged([one[1] for one in once], step), once, strict=True):
        draw_dot(axes, place, spread_of(scores), looks[name])


def dodged(bytes_: Sequence[float], step: float) -> list[float]:
    """Return places of points on the scale: equal ones are a factor `step` apart."""
    places: list[float] = []
    for value in bytes_:
        same = [other for other in bytes_ if isclose(other, value, rel_tol=_SAME)]
        before = sum(isclose(other, value, rel_tol=_SAME) for other in bytes_[: len(places)])
        places.append(value * step ** (before - (len(same) - 1) / 2))
    return places


def _draw_silent(
    axes: Axes, frame: pd.DataFrame, looks: Mapping[str, Look], low: float, step: float
) -> None:
    """Draw what sends nothing before the lowest number of bytes."""
    if not frame.empty:
        axes.axvline(low, **_RULE)
    for place, (name, runs) in enumerate(frame.groupby(_LINE, sort=False), start=1):
        draw_dot(axes, low / step**place, spread_of(list(runs[_SCORE])), looks[str(name)])


def _scale(grid: Sequence[Axes], start: float, low: float, high: float) -> None:
    """Make the shared axis of bytes logarithmic, with enough labels."""
    narrow = high < _WIDE * low
    grid[0].set_xscale("log")
    grid[0].set_xlim(start, high)
    locator = LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,))
    ticks = [tick for tick in locator.tick_values(low, high) if low <= tick <= high]
    silent = [(start * low) ** 0.5] if start < low else []
    for axes in grid:
        axes.set_xticks([*silent, *ticks], [*("none" for _ in silent), *map(_bytes, ticks)])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.grid(visible=False, axis="x")


def _bytes(count: float) -> str:
    return human_bytes(round(count)).replace(".0", "")
