"""The drawing of several seeds: a mean, and a band or bar from three seeds on.

Two seeds have neither a deviation nor an interval worth drawing, so both values are shown instead.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import isnan, nan, sqrt
from statistics import fmean, stdev
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import offset_copy

from fedstage.experiments.runs_file import SEED
from fedstage.results.figures.looks import GREY, MARKER_SIZE, Look
from fedstage.results.figures.placing import title_of_lines
from fedstage.results.figures.style import SMALL, Facets
from fedstage.results.intervals import confidence_interval
from fedstage.settings.experiments import Bands

PERCENTAGES = 0.0, 100.0  # the least and the highest
FEWEST = 3  # seeds from which a band or bar is drawn
_BAND: dict[str, Any] = {"alpha": 0.16, "linewidth": 0}
_SINGLE: dict[str, Any] = {"linewidth": 0.5, "alpha": 0.55}
_SMALL: dict[str, Any] = {"marker": "o", "markersize": 1.5, "markeredgewidth": 0}
_HALVES: dict[Bands, str] = {
    "interval": "the 95 % confidence interval of the mean (Student's t)",
    "deviation": "± 1 standard deviation (n − 1)",
}
_BESIDE = 0.5 * MARKER_SIZE + 1.2  # points from a mean to its seeds
_MOST_MARKERS = 6  # of one curve


class Spread(NamedTuple):
    """The mean over seeds, with half of its bar from three seeds on, or both values of two seeds.

    All are in percent.
    """

    mean: float
    half: float = nan
    singles: tuple[float, ...] = ()

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the bar, within what a percentage may be."""
        low, high = PERCENTAGES
        return max(low, self.mean - self.half), min(high, self.mean + self.half)


def spread_of(values: Sequence[float], bands: Bands = "deviation") -> Spread:
    """Return what is drawn for the values of several seeds.

    Half of the bar is the deviation (n - 1), or half of the 95 % interval of the mean.
    """
    if bands == "none" or len(values) == 1:
        return Spread(fmean(values))
    if len(values) < FEWEST:
        return Spread(fmean(values), singles=tuple(values))
    if bands == "deviation":
        return Spread(fmean(values), stdev(values))
    interval = confidence_interval(values)
    return Spread(interval.mean, interval.high - interval.mean)


def spread_of_cell(mean: float, deviation: float, seeds: float) -> Spread:
    """Return what is drawn for a cell of a table; mean and deviation determine both of two seeds.

    A deviation of an unknown number of seeds (nan) is drawn, since papers do not always state it.
    Without a deviation (nan or missing) there is no bar.
    """
    if pd.isna(deviation) or seeds == 1:
        return Spread(mean)
    if seeds == FEWEST - 1:
        aside = deviation / sqrt(2)
        return Spread(mean, singles=(mean - aside, mean + aside))
    return Spread(mean, float(deviation))


def draw_dot(
    axes: Axes,
    at: float,
    spread: Spread,
    look: Look,
    *,
    across: bool = False,
    hollow: bool = False,
    beside: float = _BESIDE,
) -> None:
    """Draw the mean with its bar, or two seeds as small points next to it.

    `at` is x, or y if the values lie `across`; `beside` is the distance of the small points from
    the mean, in points (1/72 inch).
    """

    def place(value: float) -> tuple[float, float]:
        return (value, at) if across else (at, value)

    if not isnan(spread.half):
        low, high = spread.ends
        halves = [[spread.mean - low], [high - spread.mean]]
        bar: dict[str, Any] = {"xerr" if across else "yerr": halves}
        axes.errorbar(
            *place(spread.mean), **bar, fmt="none", ecolor=look.colour, elinewidth=0.9, capsize=1.6
        )
    options = look.hollow if hollow else look.point
    axes.plot(*place(spread.mean), **options, zorder=3, clip_on=False)
    if spread.singles:
        x, y = (0, -beside) if across else (beside, 0)
        moved = offset_copy(axes.transData, axes.get_figure(root=True), x, y, units="points")
        for single in spread.singles:
            small = Line2D(*([value] for value in place(single)), **(look.point | _SMALL))
            small.set(transform=moved, clip_on=False)
            axes.add_artist(small)
        axes.update_datalim([place(single) for single in spread.singles])


def draw_curve(
    axes: Axes,
    runs: pd.DataFrame,
    x: str,
    y: str,
    look: Look,
    turn: tuple[int, int] = (0, 1),
    bands: Bands = "deviation",
    within: tuple[float, float] = PERCENTAGES,
) -> None:
    """Draw the mean of runs that differ in their seed, with a band or thin lines of single seeds.

    Parameters
    ----------
    axes : Axes
        Where to draw.
    runs : pandas.DataFrame
        One row per seed and point, with the columns `x`, `y` and `seed`.
    x, y : str
        The columns to draw.
    look : Look
        The look of the line.
    turn : tuple of int
        The position of the line, and the number of lines. Lines have their markers in turn, so that
        markers of lines with the same course do not cover one another.
    bands : str
        What the band shows.
    within : tuple of float
        The least and the highest value that `y` may have, at which bands end.
    """
    points = runs.groupby(x, sort=True)[y]
    mean = points.mean()
    axes.plot(mean.index, mean, **look.line, zorder=2.5)
    first, step = _markers(len(mean), *turn)
    shown = mean.iloc[first::step]
    axes.plot(shown.index, shown, **look.point, zorder=3, clip_on=False)
    seeds = runs[SEED].nunique() if bands != "none" else 1
    if seeds >= FEWEST:
        half = points.agg(lambda values: spread_of(list(values), bands).half)
        low, high = (mean - half).clip(lower=within[0]), (mean + half).clip(upper=within[1])
        axes.fill_between(mean.index, low, high, color=look.colour, **_BAND)
    elif seeds > 1:
        for _, run in runs.sort_values(x).groupby(SEED):
            axes.plot(run[x], run[y], color=look.colour, **_SINGLE)


def _markers(points: int, position: int, lines: int) -> tuple[int, int]:
    """Return the first point with a marker, and the step from one to the next.

    Each line has at least two markers, so with few points several lines share the places of theirs.
    """
    step = min(max(lines, -(-points // _MOST_MARKERS)), max(1, points // 2))
    return position * max(1, step // lines) % step, step


def explain_seeds(counts: Iterable[int], curves: bool, bands: Bands = "deviation") -> str:
    """Return a caption's text about the seeds of all lines or points, by their numbers of seeds.

    `curves` is whether there are curves, which have bands.
    """
    seeds = sorted(set(counts))
    if seeds == [1]:
        return "A single seed."
    least, most = seeds[0], seeds[-1]
    number = f"{most}" if least == most else f"{least} to {most}"
    if bands == "none":
        return f"Mean over {number} seeds."
    half = f"{'bands and bars' if curves else 'bars'}: {_HALVES[bands]}"
    single = f"{'thin lines and small points' if curves else 'small points'}: single seeds"
    if least >= FEWEST:
        return f"Mean over {number} seeds; {half}."
    if most < FEWEST:
        return f"Mean over {number} seeds; {single}."
    return f"Mean over {number} seeds; {half}, from three seeds on; {single}, of two."


# --- points in rows -------------------------------------------------------------------------------

_ROW = 0.17  # inches
_ASIDE = 0.19  # of a row: measured points are this much above, published below
_EM = 0.6 / 72  # inches of a character of a name, for each point of its font


class Dot(NamedTuple):
    """A point of a facet and row, and its published counterpart, if any."""

    facet: str
    name: str
    measured: Spread
    published: Spread | None = None


def draw_rows(
    dots: Sequence[Dot],
    names: Sequence[str],
    looks: Mapping[str, Look],
    label: str,
    axis: str,
    across: int | None = None,
) -> Figure:
    """Draw points in rows, the first on top.

    Parameters
    ----------
    dots : sequence of Dot
        What to draw.
    names : sequence of str
        The rows, from top to bottom.
    looks : mapping of str to Look
        The look of each row.
    label : str
        The label of the x axis, with its unit.
    axis : str
        The axis of the table that the rows are values of.
    across : int, optional
        Number of facets side by side, by default as `Facets` has it.
    """
    facets = list(dict.fromkeys(dot.facet for dot in dots))
    compared = any(dot.published for dot in dots)
    handles = _row_handles() if compared else ()
    left = 0.35 + max(map(len, names)) * SMALL * _EM
    height = _ROW * (len(names) + 0.4)
    grid = Facets(facets, height, handles, across=across, left=left, share_x=False)
    for axes, facet in zip(grid.grid, facets, strict=True):
        _draw_row(axes, [dot for dot in dots if dot.facet == facet], list(names), looks)
    grid.label_axes(label, title_of_lines(axis))
    return grid.figure


def _draw_row(
    axes: Axes, dots: Sequence[Dot], names: Sequence[str], looks: Mapping[str, Look]
) -> None:
    for dot in dots:
        row, look = names.index(dot.name), looks[dot.name]
        aside = _ASIDE if any(other.published for other in dots) else 0.0
        draw_dot(axes, row - aside, dot.measured, look, across=True)
        if dot.published:
            draw_dot(axes, row + aside, dot.published, look, across=True, hollow=True)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.margins(x=0.08)
    for row in range(1, len(names)):
        axes.axhline(row - 0.5, color="0.93", linewidth=0.5, zorder=0)


def _row_handles() -> tuple[Line2D, Line2D]:
    return (
        Line2D([], [], label="measured", **GREY.point),
        Line2D([], [], label="published", **GREY.hollow),
    )
