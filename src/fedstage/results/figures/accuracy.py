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
from fedstage.results.tables.labels import head_of, join_labels, show_value
from fedstage.results.tables.runs import RUN, SEED
from fedstage.settings.scores import Metric

#: Columns that drawing adds to the frame of runs.
_LINE, _FACET, _EVALUATIONS = "_line", "_facet", "_evaluations"
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
_MOST_MARKERS = 25  # rounds; more would hide the lines
_BAND: dict[str, Any] = {"alpha": 0.18, "linewidth": 0}
_LINE_WIDTH = 1.6


def line_axis(rows: Sequence[str]) -> str:
    """Return the axis that the lines are: the method, or else the first axis of the rows."""
    return "method" if "method" in rows else rows[0]


def draw_accuracy(
    frame: pd.DataFrame,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    metric: Metric = "top1_accuracy",
) -> Figure:
    """Draw top-1 accuracy, or another metric, over rounds.

    A run with a single evaluated round (trained without federation, say) has no curve: it is a
    dashed horizontal line.

    Parameters
    ----------
    frame : pandas.DataFrame
        The runs, as `read_runs` returns them.
    rows, columns : sequence of str
        The table's axes: `line_axis(rows)` gives the lines, the values of all others the facets.
    title : str
        Stands above the figure.
    metric : str
        What is drawn.
    """
    frame = _labelled(frame, line_axis(rows), [*rows, *columns])
    facets = list(frame[_FACET].unique())
    palette = colours_of(list(frame[_LINE].unique()))
    size = (4.8, 3.2) if len(facets) == 1 else (3.1, 2.5)
    with style():
        beside = 0.7 + 0.09 * max(map(len, palette))
        across = facet_columns(len(facets))
        figure, grid = facet_grid(len(facets), across, size, beside)
        for axes, facet in zip(grid, facets, strict=True):
            axes.set_title(facet)
            _draw_facet(axes, frame[frame[_FACET] == facet], palette, metric)
        _label_axes(grid, across, frame, metric)
        set_legend(figure, line_axis(rows), _legend_handles(frame, palette))
        set_title(figure, title)
        set_note(figure, _note(frame))
    return figure


def _labelled(frame: pd.DataFrame, line: str, axes: Sequence[str]) -> pd.DataFrame:
    """Add columns: the line and the facet of each row, and how many rounds its run evaluated."""
    facet_axes = [axis for axis in axes if axis != line and frame[axis].nunique(dropna=False) > 1]
    points = frame[facet_axes].itertuples(index=False, name=None)
    return frame.assign(
        **{
            _LINE: [show_value(value) for value in frame[line]],
            _FACET: [join_labels(facet_axes, point) for point in points] if facet_axes else "",
            _EVALUATIONS: frame.groupby(RUN)["round"].transform("size"),
        }
    )


def _markers(frame: pd.DataFrame, lines: Iterable[str]) -> dict[str, str]:
    """Return a marker a line, or none where the rounds are many."""
    few = frame["round"].nunique() <= _MOST_MARKERS
    return dict(zip(lines, cycle(_MARKERS if few else ("",)), strict=False))


def _draw_facet(
    axes: Axes, frame: pd.DataFrame, palette: dict[str, Colour], metric: Metric
) -> None:
    once = frame[_EVALUATIONS] == 1
    for line, runs in frame[once].groupby(_LINE, sort=False):
        _draw_level(axes, runs[metric], palette[str(line)])
    if not once.all():
        _draw_curves(axes, frame[~once], palette, metric)


def _draw_curves(
    axes: Axes, frame: pd.DataFrame, palette: dict[str, Colour], metric: Metric
) -> None:
    sns.lineplot(
        frame,
        x="round",
        y=metric,
        hue=_LINE,
        palette=palette,
        style=_LINE,
        dashes=False,
        markers=_markers(frame, palette),
        errorbar="sd" if frame[SEED].nunique() > 1 else None,
        err_kws=_BAND,
        linewidth=_LINE_WIDTH,
        legend=False,
        ax=axes,
    )


def _draw_level(axes: Axes, values: pd.Series, colour: Colour) -> None:
    """Draw the mean over seeds as a dashed horizontal line, and a band of one deviation."""
    mean, deviation = values.mean(), values.std(ddof=1)
    axes.axhline(mean, color=colour, linestyle="--", linewidth=_LINE_WIDTH)
    if len(values) > 1:
        axes.axhspan(mean - deviation, mean + deviation, color=colour, **_BAND)


def _label_axes(grid: Sequence[Axes], across: int, frame: pd.DataFrame, metric: Metric) -> None:
    label = head_of(metric).replace(" (%)", f", {' and '.join(frame['role'].unique())} (%)")
    set_axis_labels(grid, across, "Round", label)
    grid[0].xaxis.set_major_locator(MaxNLocator(integer=True))  # the scale is shared
    if (frame[_EVALUATIONS] == 1).all():
        grid[0].set_xticks([])  # no run has a course over rounds
        set_axis_labels(grid, across, "", label)


def _legend_handles(frame: pd.DataFrame, palette: dict[str, Colour]) -> list[Line2D]:
    curves = frame[frame[_EVALUATIONS] > 1]
    markers = _markers(curves, palette)
    return [
        Line2D(
            [],
            [],
            color=colour,
            marker=markers[line],
            markeredgecolor="white",
            linewidth=_LINE_WIDTH,
            label=line,
        )
        if line in set(curves[_LINE])
        else Line2D([], [], color=colour, linestyle="--", linewidth=_LINE_WIDTH, label=line)
        for line, colour in palette.items()
    ]


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
