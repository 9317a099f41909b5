"""Accuracy, or another metric, over rounds.

A line a method, a band over seeds, a facet a point of the other axes.
"""

from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fedstage.results.figures.style import (
    BAND,
    MARKERS,
    Colour,
    Facets,
    colours_of,
    draw_level,
    style,
)
from fedstage.results.runs_file import SEED
from fedstage.results.tables.labels import METHOD, axis_label, head_of, join_points, show_value
from fedstage.results.tables.runs import RUN
from fedstage.settings.scores import Metric

#: Columns that drawing adds to the frame of runs.
_LINE, _FACET, _EVALUATIONS = "_line", "_facet", "_evaluations"
_MOST_MARKERS = 25  # rounds; more would hide the lines
LINE_WIDTH = 1.6


def line_axis(rows: Sequence[str]) -> str:
    """Return the axis of the lines, by its key or label: the method, or else the first row axis."""
    return next((axis for axis in rows if axis in (METHOD, axis_label(METHOD))), rows[0])


def varying_axes(frame: pd.DataFrame, axes: Sequence[str]) -> list[str]:
    """Return the axes with more than one value."""
    return [axis for axis in axes if frame[axis].nunique(dropna=False) > 1]


@style()
def draw_accuracy(
    frame: pd.DataFrame,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    metric: Metric = "top1_accuracy",
) -> Figure:
    """Draw top-1 accuracy, or another metric, over rounds.

    `frame` are the runs, as `read_runs` returns them. Of the table's axes `line_axis(rows)` has the
    lines, all others the facets. A run with a single evaluated round (trained without federation,
    say) has no curve but a dashed horizontal line.
    """
    frame = _labelled(frame, line_axis(rows), [*rows, *columns])
    labels = list(frame[_FACET].unique())
    palette = colours_of(list(frame[_LINE].unique()))
    size = (4.8, 3.2) if len(labels) == 1 else (3.1, 2.5)
    facets = Facets(labels, size, 0.7 + 0.09 * max(map(len, palette)))
    for axes, label in zip(facets.grid, labels, strict=True):
        _draw_facet(axes, frame[frame[_FACET] == label], palette, metric)
    _label_axes(facets, frame, metric)
    handles = _legend_handles(frame, palette)
    return facets.annotate(title, note=_note(frame), legend=line_axis(rows), handles=handles)


def _labelled(frame: pd.DataFrame, line: str, axes: Sequence[str]) -> pd.DataFrame:
    """Add columns: line and facet of each row, and the number of evaluated rounds of its run."""
    varying = [axis for axis in varying_axes(frame, axes) if axis != line]
    texts = {
        _LINE: [show_value(value) for value in frame[line]],
        _FACET: join_points(frame, varying),
    }
    rounds = frame.groupby(RUN)["round"].transform("size")
    return frame.assign(**texts, **{_EVALUATIONS: rounds})


def markers_of(frame: pd.DataFrame, lines: Iterable[str]) -> dict[str, str]:
    """Return the marker of each line, none for many rounds."""
    few = frame["round"].nunique() <= _MOST_MARKERS
    return dict(zip(lines, cycle(MARKERS if few else ("",)), strict=False))


def _draw_facet(
    axes: Axes, frame: pd.DataFrame, palette: dict[str, Colour], metric: Metric
) -> None:
    once = frame[_EVALUATIONS] == 1
    for line, runs in frame[once].groupby(_LINE, sort=False):
        mean, deviation = runs[metric].mean(), runs[metric].std(ddof=1)
        draw_level(axes, mean, deviation, palette[str(line)], LINE_WIDTH)
    curves = frame[~once]
    if curves.empty:
        return
    sns.lineplot(
        curves,
        x="round",
        y=metric,
        hue=_LINE,
        palette=palette,
        style=_LINE,
        dashes=False,
        markers=markers_of(curves, palette),
        errorbar="sd" if curves[SEED].nunique() > 1 else None,
        err_kws=BAND,
        linewidth=LINE_WIDTH,
        legend=False,
        ax=axes,
    )


def _label_axes(facets: Facets, frame: pd.DataFrame, metric: Metric) -> None:
    label = head_of(metric).replace(" (%)", f", {' and '.join(frame['role'].unique())} (%)")
    facets.label_axes("Round", label)
    facets.grid[0].xaxis.set_major_locator(MaxNLocator(integer=True))  # the scale is shared
    if (frame[_EVALUATIONS] == 1).all():
        facets.grid[0].set_xticks([])  # no run has a course over rounds
        facets.label_axes("", label)


def _legend_handles(frame: pd.DataFrame, palette: dict[str, Colour]) -> list[Line2D]:
    curves = frame[frame[_EVALUATIONS] > 1]
    markers, drawn = markers_of(curves, palette), set(curves[_LINE])
    handles = []
    for line, colour in palette.items():
        curve = {"marker": markers[line], "markeredgecolor": "white"}
        look: dict[str, Any] = curve if line in drawn else {"linestyle": "--"}
        handles.append(Line2D([], [], color=colour, linewidth=LINE_WIDTH, label=line, **look))
    return handles


def _note(frame: pd.DataFrame) -> str:
    counts = frame.groupby([_LINE, _FACET])[SEED].nunique()
    least, most = counts.min(), counts.max()
    note = "A single seed."
    if most > 1:
        seeds = f"{most}" if least == most else f"{least} to {most}"
        note = f"Lines: mean over {seeds} seeds; bands: ± 1 standard deviation."
    if (frame[_EVALUATIONS] == 1).any():
        note += " Dashed: evaluated once, at the end of training."
    return note
