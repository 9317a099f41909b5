"""Accuracy over rounds."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedstage.experiments.runs_file import SEED
from fedstage.results.figures.looks import BEHIND, NONE, Look, line_handle, looks_of
from fedstage.results.figures.placing import (
    FACET,
    LINE,
    TOGETHER,
    grid_columns,
    line_axis,
    panel_height,
    panels_of,
    placed,
    title_of_lines,
)
from fedstage.results.figures.rounds import Strip, draw_strip, strip_beside
from fedstage.results.figures.seeds import Dot, draw_curve, draw_rows, explain_seeds, spread_of
from fedstage.results.figures.style import EM, SMALL, Facets, style
from fedstage.results.tables.labels import ROLES, head_of
from fedstage.results.tables.runs import RUN, last_rounds
from fedstage.settings.experiments import Bands
from fedstage.settings.scores import Metric

# --- lines of methods without rounds --------------------------------------------------------------
#
# References: runs that are evaluated once, as named horizontal lines in a figure of curves.
#
# Examples are local training of each client, training on all data, closed forms and one-shot
# methods.

#: The most references that have their names next to them; more are in the legend.
MOST_NAMED = 5
_THIN: dict[str, Any] = {"linewidth": 0.8, "zorder": 1.5}
_LINE = 1.15 / 72  # inches of a line, for each point of its font
_BOX: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.4}
_MARGIN = 0.1  # of the height, for names above all lines
_SAMPLES = 9  # of a curve below a name


#: Points of a line, in the units of the axes.
Line = np.ndarray[tuple[int, int], np.dtype[np.float64]]


class Reference(NamedTuple):
    """A horizontal line: its name and height."""

    name: str
    height: float


def draw_references(
    axes: Axes, strip: Strip, references: Iterable[Reference], looks: Mapping[str, Look]
) -> None:
    """Draw a line from the first round to each reference's place in the strip."""
    for name, height in references:
        axes.plot([strip.first, strip.places[name]], [height] * 2, **looks[name].line | _THIN)


def name_references(
    axes: Axes,
    strip: Strip,
    references: Sequence[Reference],
    looks: Mapping[str, Look],
    size: tuple[float, float],
) -> None:
    """Write the name of each reference above or below its line, where there is the most room.

    All lines must have been drawn; `size` is the size of the axes in inches.
    """
    axes.margins(y=_MARGIN)
    low, high = axes.get_ylim()
    up, across = (high - low) / size[1], np.ptp(axes.get_xlim()) / size[0]  # units per inch
    step = 0.6 * SMALL * _LINE * up
    lines = [np.asarray(line.get_xydata()) for line in axes.lines]
    taken: list[Line] = []
    for name, height in references:
        wide = len(name) * SMALL * EM * across
        starts = [strip.last - wide, strip.first]
        places = [(x, y) for x, y in product(starts, (height + step, height - step))]
        inside = [place for place in places if low + step <= place[1] <= high - step]
        left, middle = max(inside or places, key=partial(_room, wide, [*lines, *taken], 2 * step))
        taken.append(np.array([(left, middle), (left + wide, middle)]))
        options: dict[str, Any] = {
            "va": "center",
            "fontsize": SMALL,
            "color": looks[name].colour,
            "bbox": _BOX,
        }
        axes.text(left, middle, name, **options)


def _room(wide: float, lines: Sequence[Line], enough: float, place: tuple[float, float]) -> float:
    """Return the vertical distance from a name to the nearest line, at most `enough`."""
    across = np.linspace(place[0], place[0] + wide, _SAMPLES)
    near = [
        np.interp(across, x, y, np.inf, np.inf) - place[1] for x, y in (line.T for line in lines)
    ]
    return min(enough, *(float(np.abs(one).min()) for one in near))


# --- the figure -----------------------------------------------------------------------------------
#
# A metric over rounds: one line per method, one facet per combination of the other axes' values.
#
# Up to five curves share their axes. More curves are split into panels, each with a few of them in
# colour and the others in grey. Runs that are evaluated once are named horizontal lines, or rows of
# points if no run is evaluated more than once.

#: A column that drawing adds to the frame of runs.
_EVALUATIONS = "_evaluations"


@style()
def draw_accuracy(
    frame: pd.DataFrame,
    rows: Sequence[str],
    columns: Sequence[str],
    metric: Metric = "top1_accuracy",
    given: Mapping[str, Look] = NONE,
    bands: Bands = "interval",
) -> Figure:
    """Draw top-1 accuracy, or another metric, over rounds.

    `frame` has the runs, as `read_runs` returns them. Lines are the values of `line_axis(rows)`;
    all other axes of the table give the facets. A strip next to the curves has the last evaluated
    round of each. `given` are looks of lines by their labels, and `bands` is what bands and bars
    show.
    """
    axis = line_axis(rows)
    frame = _labelled(frame, axis, [*rows, *columns])
    looks = looks_of(frame[LINE].unique(), given)
    across = grid_columns(frame, axis, [*rows, *columns])
    curves = frame[frame[_EVALUATIONS] > 1]
    if curves.empty:
        dots = _dots(frame, metric, bands)
        return draw_rows(dots, list(looks), looks, head_of(metric), axis, across)
    drawn = list(dict.fromkeys(curves[LINE]))
    once = [name for name in looks if name not in drawn]
    panels = panels_of(list(frame[FACET].unique()), drawn)
    if len(panels) > frame[FACET].nunique():
        across = None  # the panels of one facet stand together
    legend = [] if panels[0].title in drawn else drawn
    legend = [*legend, *(once if len(once) > MOST_NAMED else ())]
    height = panel_height(len(panels), across or 3)
    facets = Facets(
        [panel.title for panel in panels],
        height,
        [line_handle(name, looks[name]) for name in looks if name in legend],
        title_of_lines(axis),
        across=across,
    )
    ends = (curves["round"].min(), curves["round"].max())
    most = max(len(panel.names) for panel in panels) + len(once)
    named = []
    for axes, panel in zip(facets.grid, panels, strict=True):
        names = [name for name in looks if name in (*panel.names, *once)]
        strip = strip_beside(*ends, names, facets.axes_width, most)
        here = frame[frame[FACET] == panel.facet]
        _draw_curves(axes, here[here[LINE].isin(drawn)], panel.names, metric, looks, bands)
        last = last_rounds(here[here[LINE].isin(names)]).groupby(LINE, sort=False)[metric]
        spreads = {str(name): spread_of(list(scores), bands) for name, scores in last}
        lines = [Reference(name, spreads[name].mean) for name in once if name in spreads]
        draw_references(axes, strip, lines, looks)
        draw_strip(axes, strip, spreads, looks)
        named.append((axes, strip, lines))
    facets.label_axes("Round", head_of(metric))
    for axes, strip, lines in named if len(once) <= MOST_NAMED else ():
        name_references(axes, strip, lines, looks, (facets.axes_width, height))
    return facets.figure


def describe_accuracy(
    frame: pd.DataFrame, rows: Sequence[str], columns: Sequence[str], bands: Bands = "interval"
) -> str:
    """Return the caption's text on the lines and points of `draw_accuracy`."""
    frame = _labelled(frame, line_axis(rows), [*rows, *columns])
    has_curves = bool((frame[_EVALUATIONS] > 1).any())
    counts = frame.groupby([LINE, FACET])[SEED].nunique()
    roles = "" if frame["role"].nunique() > 1 else f" on {ROLES[frame['role'].iloc[0]]}"
    what = f"Last evaluated round{roles}." if not has_curves else f"Over rounds{roles}."
    if not has_curves and frame[FACET].nunique() > 1:
        what += " Each panel has its own scale."
    if has_curves:
        curved = frame.loc[frame[_EVALUATIONS] > 1, LINE].nunique()
        what += " In grey: the curves of the other panels." * (curved > TOGETHER)
        what += " At the end: the last evaluated round of each, side by side."
        if (frame[_EVALUATIONS] == 1).any():
            what += " Horizontal lines: methods that are evaluated once, at the end of training."
    return f"{what} {explain_seeds(counts, has_curves, bands)}"


def _labelled(frame: pd.DataFrame, line: str, axes: Sequence[str]) -> pd.DataFrame:
    """Add columns: line and facet of each row, and the number of evaluated rounds of its run."""
    rounds = frame.groupby(RUN)["round"].transform("size")
    return placed(frame, line, axes).assign(**{_EVALUATIONS: rounds})


def _draw_curves(
    axes: Axes,
    frame: pd.DataFrame,
    names: Sequence[str],
    metric: Metric,
    looks: Mapping[str, Look],
    bands: Bands,
) -> None:
    """Draw curves of `names`, and the means of the others behind them."""
    for name, runs in frame.groupby(LINE, sort=False):
        if name in names:
            turn = (names.index(str(name)), len(names))
            draw_curve(axes, runs, "round", metric, looks[str(name)], turn, bands)
        else:
            axes.plot(runs.groupby("round")[metric].mean(), **BEHIND)


def _dots(frame: pd.DataFrame, metric: Metric, bands: Bands) -> list[Dot]:
    cells = last_rounds(frame).groupby([FACET, LINE], sort=False)[metric]
    return [
        Dot(str(facet), str(line), spread_of(list(scores), bands))
        for (facet, line), scores in cells
    ]
