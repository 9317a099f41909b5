"""Accuracy against the bytes that one client has sent and received (FENS, Figures 3 and 8).

Methods with rounds are curves, others are points; there is one facet per combination of the other
axes. More than five curves, or many points, are split into panels, each with a few of them in
colour and the others in grey.
"""

from collections.abc import Mapping, Sequence
from math import log10
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedstage.experiments.runs_file import SEED
from fedstage.results.communication.runs import RunTraffic
from fedstage.results.figures.looks import BEHIND, NONE, Look, line_handle, looks_of, point_handle
from fedstage.results.figures.placing import (
    FACET,
    LINE,
    MOST_ALONE,
    PLACE,
    TOGETHER,
    Panel,
    line_axis,
    panel_height,
    panels_of,
    placed,
    scale_bytes,
    side_by_side,
    title_of_lines,
)
from fedstage.results.figures.seeds import draw_curve, draw_dot, explain_seeds, spread_of
from fedstage.results.figures.style import Facets, style
from fedstage.results.tables.labels import head_of
from fedstage.settings.experiments import Bands
from fedstage.settings.scores import Metric

_POINTS, _MOVED, _SCORE = "_points", "_moved", "_score"
_SENDS = "_sends"
_WIDE = 30.0  # ratio of bytes above which labels at powers of ten are enough
_NARROW = 2.0  # ratio below which the axis is widened
_DOT: dict[str, Any] = {"marker": "o", "markersize": 2.0}


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

    Curves and points are the values of `line_axis(rows)`; all other axes of the table that vary
    give the facets. Methods that send nothing stand before the scale. `given` are looks of lines by
    their labels, and `bands` is what bands and bars show.
    """
    axis = line_axis(rows)
    frame = frame_of(runs, axis, [*rows, *columns])
    looks = looks_of(frame[LINE].unique(), given)
    panels = _panels(frame)
    legend = [] if panels[0].title in looks else list(looks)
    facets = Facets(
        [panel.title for panel in panels],
        panel_height(len(panels)),
        _handles(frame, {name: looks[name] for name in legend}),
        title_of_lines(axis),
    )
    low, high = _limits(frame)
    silent = frame.loc[~frame[_SENDS], LINE].nunique()
    decades = log10(high / low) / max(facets.axes_width - PLACE * (silent + 1), 0.5)
    step = 10 ** (PLACE * decades)  # between points, as a factor of bytes
    start = low / step ** (silent + 1)
    middle = (start * low) ** 0.5 if silent else None
    for axes, panel in zip(facets.grid, panels, strict=True):
        here = frame[frame[FACET] == panel.facet]
        shown = here[LINE].isin(panel.names)
        if middle is not None:
            here = _beside(here, middle, step)
        _draw_behind(axes, here[~shown])
        _draw(axes, here[shown], looks, bands)
        scale_bytes(axes, start if silent else low, low, high * step, _WIDE, middle)
    facets.label_axes("Bytes to and from a client", head_of(metric))
    return facets.figure


def _panels(frame: pd.DataFrame) -> list[Panel]:
    """Return the panels: one per facet, or several if a facet would have too many lines."""
    facets, names = list(frame[FACET].unique()), list(frame[LINE].unique())
    curves = frame.loc[frame[_POINTS] > 1, LINE].nunique()
    if curves <= TOGETHER and len(names) <= MOST_ALONE:
        return [Panel(facet, names, facet) for facet in facets]
    return panels_of(facets, names)


def _handles(frame: pd.DataFrame, looks: Mapping[str, Look]) -> list[Line2D]:
    """Return the entries of the legend: curves, or points."""
    curved = set(frame.loc[frame[_POINTS] > 1, LINE])
    return [
        (line_handle if name in curved else point_handle)(name, look)
        for name, look in looks.items()
    ]


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
    if {len(panel.names) for panel in _panels(frame)} != {frame[LINE].nunique()}:
        text += " In grey: the curves and points of the other panels."
    if not frame[_SENDS].all():
        text += " Before the scale: methods that send nothing."
    counts = frame.groupby([LINE, FACET])[SEED].nunique()
    return f"{text} {explain_seeds(counts, curves, bands)}"


def frame_of(runs: Sequence[RunTraffic], axis: str, axes: Sequence[str]) -> pd.DataFrame:
    """Return one row per run and evaluated round: line, facet, seed, bytes moved, and score.

    Bytes are means over the seeds of a line and facet. Runs that send nothing have only the last
    point.

    Raises
    ------
    ValueError
        If runs that differ only in their seed have different lengths.
    """
    rows = [
        {name: run.settings[name] for name in (*axes, SEED)}
        | {
            "point": point,
            _POINTS: len(run.course) if run.communicates else 1,
            _SENDS: run.communicates,
            _MOVED: reached.moved.both,
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


def _beside(frame: pd.DataFrame, middle: float, step: float) -> pd.DataFrame:
    """Place points without bytes side by side around the `middle` of the place before the scale."""
    places = side_by_side(list(frame.loc[~frame[_SENDS], LINE].unique()), middle, step)
    return frame.assign(**{_MOVED: frame[_MOVED].where(frame[_SENDS], frame[LINE].map(places))})


def _draw(axes: Axes, frame: pd.DataFrame, looks: Mapping[str, Look], bands: Bands) -> None:
    """Draw the curves and points of a panel in colour."""
    names = list(frame.loc[frame[_POINTS] > 1, LINE].unique())
    for name, runs in frame.groupby(LINE, sort=False):
        look = looks[str(name)]
        if name in names:
            turn = (names.index(name), len(names))
            draw_curve(axes, runs, _MOVED, _SCORE, look, turn, bands)
        else:
            draw_dot(axes, float(runs[_MOVED].iloc[0]), spread_of(list(runs[_SCORE]), bands), look)


def _draw_behind(axes: Axes, frame: pd.DataFrame) -> None:
    """Draw the means of a panel's other curves and points in grey."""
    for _, runs in frame.groupby(LINE, sort=False):
        means = runs.groupby(_MOVED)[_SCORE].mean()
        axes.plot(means.index, means, **BEHIND, **(_DOT if len(means) == 1 else {}))
