"""Accuracy against the bytes that one client has sent and received (FENS, Figures 3 and 8).

Methods with rounds are curves, others points; one facet per combination of the other axes.
"""

from collections.abc import Mapping, Sequence
from math import log10
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedstage.results.communication.runs import RunTraffic
from fedstage.results.figures.looks import NONE, Look, line_handle, looks_of, point_handle
from fedstage.results.figures.placing import (
    FACET,
    LINE,
    line_axis,
    placed,
    scale_bytes,
    side_by_side,
    title_of_lines,
)
from fedstage.results.figures.seeds import draw_curve, draw_dot, explain_seeds, spread_of
from fedstage.results.figures.style import Facets, style
from fedstage.results.runs_file import SEED
from fedstage.results.tables.labels import head_of
from fedstage.settings.figures import Bands
from fedstage.settings.scores import Metric

_POINTS, _MOVED, _SCORE = "_points", "_moved", "_score"
_SENDS = "_sends"
_ALONE, _BESIDE = 2.2, 1.6  # inches of height
_PLACE = 0.085  # inches between points that would hide one another
_WIDE = 30.0  # ratio of bytes from which on labels at powers of ten are enough
_NARROW = 2.0  # ratio below which the axis is widened
_RULE: dict[str, Any] = {"color": "0.75", "linewidth": 0.6, "zorder": 0}


@style()
def draw_communication(
    runs: Sequence[RunTraffic],
    rows: Sequence[str],
    columns: Sequence[str],
    metric: Metric = "top1_accuracy",
    given: Mapping[str, Look] = NONE,
    bands: Bands = "interval",
) -> Figure:
    """Draw top-1 accuracy, or another metric, over the bytes that one client has moved.

    Of the table's axes `line_axis(rows)` has curves and points, all others that vary the facets.
    Methods that send nothing stand before the scale. Points of as many bytes stand side by side.
    `given` are looks of lines by their labels, and `bands` is what bands and bars show.
    """
    axis = line_axis(rows)
    frame = frame_of(runs, axis, [*rows, *columns])
    looks = looks_of(frame[LINE].unique(), given)
    curved = set(frame.loc[frame[_POINTS] > 1, LINE])
    handles = [
        (line_handle if name in curved else point_handle)(name, look)
        for name, look in looks.items()
    ]
    labels = list(frame[FACET].unique())
    height = _ALONE if len(labels) == 1 else _BESIDE
    facets = Facets(labels, height, handles, title_of_lines(axis))
    low, high = _limits(frame)
    silent = list(frame.loc[~frame[_SENDS], LINE].unique())
    decades = log10(high / low) / max(facets.axes_width - _PLACE * (len(silent) + 1), 0.5)
    step = 10 ** (_PLACE * decades)  # between points, as a factor of bytes
    for axes, label in zip(facets.grid, labels, strict=True):
        _draw(axes, frame[frame[FACET] == label], looks, step, bands)
        _draw_silent(axes, frame[(frame[FACET] == label) & ~frame[_SENDS]], looks, low, step, bands)
    start = low / step ** (len(silent) + 1) if silent else low
    for axes in facets.grid:
        middle = (start * low) ** 0.5 if silent else None
        scale_bytes(axes, start, low, high * step, _WIDE, middle)
    facets.label_axes("Bytes to and from a client", head_of(metric))
    return facets.figure


def describe_communication(
    runs: Sequence[RunTraffic],
    rows: Sequence[str],
    columns: Sequence[str],
    bands: Bands = "interval",
) -> str:
    """Return the caption's text on the curves and points of `draw_communication`."""
    frame = frame_of(runs, line_axis(rows), [*rows, *columns])
    curves = bool((frame[_POINTS] > 1).any())
    text = "Curves: rounds. Points: methods that are evaluated once, at the end of training."
    if not frame[_SENDS].all():
        text += " Before the scale: methods that send nothing."
    counts = frame.groupby([LINE, FACET])[SEED].nunique()
    return f"{text} {explain_seeds(counts, curves, bands)}"


def frame_of(runs: Sequence[RunTraffic], axis: str, axes: Sequence[str]) -> pd.DataFrame:
    """Return one row per run and evaluated round: line, facet, seed, bytes moved, and score.

    Bytes are means over the seeds of a line and facet. The last point is all there is of runs that
    send nothing.

    Raises
    ------
    ValueError
        If runs that differ in their seed only are of different lengths.
    """
    rows = [
        {name: run.settings[name] for name in (*axes, SEED)}
        | {
            "point": point,
            _POINTS: len(run.course) if run.communicates else 1,
            _SENDS: run.communicates,
            _MOVED: reached.moved,
            _SCORE: reached.score,
        }
        for run in runs
        for point, reached in enumerate(run.course if run.communicates else run.course[-1:])
    ]
    frame = placed(pd.DataFrame(rows), axis, axes)
    lengths = frame.groupby([LINE, FACET])[_POINTS].nunique()
    if (lengths > 1).any():
        raise ValueError(f"{lengths.idxmax()}: the course of one seed is shorter than another's")
    same = frame.groupby([LINE, FACET, "point"])[_MOVED]
    return frame.assign(**{_MOVED: same.transform("mean")})


def _limits(frame: pd.DataFrame) -> tuple[float, float]:
    """Return the limits of the scale of bytes."""
    moved = frame.loc[frame[_SENDS], _MOVED]
    if moved.empty:
        return 1.0, 10.0
    low, high = moved.min(), moved.max()
    margin = _NARROW if high < _NARROW * low else (high / low) ** 0.06
    return low / margin, high * margin


def _draw(
    axes: Axes, frame: pd.DataFrame, looks: Mapping[str, Look], step: float, bands: Bands
) -> None:
    """Draw what sends something."""
    names = list(frame.loc[frame[_POINTS] > 1, LINE].unique())
    once = []
    for name, runs in frame[frame[_SENDS]].groupby(LINE, sort=False):
        if runs[_POINTS].iloc[0] > 1:
            turn = (names.index(str(name)), len(names))
            draw_curve(axes, runs, _MOVED, _SCORE, looks[str(name)], turn, bands)
        else:
            once.append((str(name), float(runs[_MOVED].iloc[0]), list(runs[_SCORE])))
    for place, (name, _, scores) in zip(
        side_by_side([point[1] for point in once], step), once, strict=True
    ):
        draw_dot(axes, place, spread_of(scores, bands), looks[name])


def _draw_silent(
    axes: Axes,
    frame: pd.DataFrame,
    looks: Mapping[str, Look],
    low: float,
    step: float,
    bands: Bands,
) -> None:
    """Draw what sends nothing before the lowest number of bytes."""
    if not frame.empty:
        axes.axvline(low, **_RULE)
    for place, (name, runs) in enumerate(frame.groupby(LINE, sort=False), start=1):
        spread = spread_of(list(runs[_SCORE]), bands)
        draw_dot(axes, low / step**place, spread, looks[str(name)])
