"""A metric over rounds: one line per method, one facet per combination of the other axes' values.

Runs that are evaluated once are points at the end, and rows of points where no run has a course.
"""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedstage.results.figures.looks import Look, line_handle, looks_of, point_handle
from fedstage.results.figures.placing import FACET, LINE, line_axis, placed, title_of_lines
from fedstage.results.figures.rows import Dot, draw_rows
from fedstage.results.figures.seeds import draw_curve, explain_seeds, spread_of
from fedstage.results.figures.strips import Strip, draw_strip, strip_beside
from fedstage.results.figures.style import Facets, style
from fedstage.results.runs_file import SEED
from fedstage.results.tables.labels import ROLES, head_of
from fedstage.results.tables.runs import RUN, last_rounds
from fedstage.settings.scores import Metric

#: A column that drawing adds to the frame of runs.
_EVALUATIONS = "_evaluations"
_ALONE, _BESIDE = 2.1, 1.55  # inches of height


@style()
def draw_accuracy(
    frame: pd.DataFrame,
    rows: Sequence[str],
    columns: Sequence[str],
    metric: Metric = "top1_accuracy",
) -> Figure:
    """Draw top-1 accuracy, or another metric, over rounds.

    `frame` are the runs, as `read_runs` returns them. Of the table's axes `line_axis(rows)` has the
    lines, all others the facets. A strip next to the curves has the last evaluated round of every
    method: all there is of a run with a single one (in one shot, say, or without federation).
    """
    axis = line_axis(rows)
    frame = _labelled(frame, axis, [*rows, *columns])
    looks = looks_of(list(frame[LINE].unique()))
    curves = frame[frame[_EVALUATIONS] > 1]
    if curves.empty:
        return draw_rows(_dots(frame, metric), list(looks), looks, head_of(metric), axis)
    labels = list(frame[FACET].unique())
    drawn = set(curves[LINE])
    handles = [
        (line_handle if name in drawn else point_handle)(name, look) for name, look in looks.items()
    ]
    height = _ALONE if len(labels) == 1 else _BESIDE
    facets = Facets(labels, height, handles, title_of_lines(axis))
    ends = (curves["round"].min(), curves["round"].max())
    strip = strip_beside(*ends, list(looks), facets.axes_width)
    for axes, label in zip(facets.grid, labels, strict=True):
        _draw_facet(axes, frame[frame[FACET] == label], looks, metric, strip)
    facets.label_axes("Round", head_of(metric))
    return facets.figure


def describe_accuracy(frame: pd.DataFrame, rows: Sequence[str], columns: Sequence[str]) -> str:
    """Return the caption's text on the lines and points of `draw_accuracy`."""
    frame = _labelled(frame, line_axis(rows), [*rows, *columns])
    has_curves = bool((frame[_EVALUATIONS] > 1).any())
    counts = frame.groupby([LINE, FACET])[SEED].nunique()
    roles = "" if frame["role"].nunique() > 1 else f" on {ROLES[frame['role'].iloc[0]]}"
    what = f"Last evaluated round{roles}." if not has_curves else f"Over rounds{roles}."
    if has_curves:
        what += " At the end: the last evaluated round of each, side by side."
        if (frame[_EVALUATIONS] == 1).any():
            what += " Methods without a line are evaluated once, at the end of training."
    return f"{what} {explain_seeds(counts, has_curves)}"


def _labelled(frame: pd.DataFrame, line: str, axes: Sequence[str]) -> pd.DataFrame:
    """Add columns: line and facet of each row, and the number of evaluated rounds of its run."""
    rounds = frame.groupby(RUN)["round"].transform("size")
    return placed(frame, line, axes).assign(**{_EVALUATIONS: rounds})


def _draw_facet(
    axes: Axes, frame: pd.DataFrame, looks: Mapping[str, Look], metric: Metric, strip: Strip
) -> None:
    curves = frame[frame[_EVALUATIONS] > 1]
    names = list(curves[LINE].unique())
    for name, runs in curves.groupby(LINE, sort=False):
        turn = (names.index(str(name)), len(names))
        draw_curve(axes, runs, "round", metric, looks[str(name)], turn)
    last = last_rounds(frame).groupby(LINE, sort=False)[metric]
    draw_strip(axes, strip, {str(name): spread_of(list(ends)) for name, ends in last}, looks)


def _dots(frame: pd.DataFrame, metric: Metric) -> list[Dot]:
    cells = last_rounds(frame).groupby([FACET, LINE], sort=False)[metric]
    return [Dot(str(facet), str(line), spread_of(list(scores))) for (facet, line), scores in cells]
