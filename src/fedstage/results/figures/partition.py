"""A partition as papers draw it: a bubble a client and class, its area the number of samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import floor, log10, sqrt
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, Locator, MaxNLocator

from fedstage.errors import FedstageError
from fedstage.results.figures.style import (
    facet_columns,
    facet_grid,
    set_axis_labels,
    set_legend,
    set_note,
    set_title,
    style,
)
from fedstage.results.tables.labels import join_labels
from fedstage.results.tables.runs import SEED, AxisValue, ResultRun
from fedstage.storage.tensors import load_table

MOST_PARTITIONS = 6
_MOST_BESIDE = 30  # clients; with more, partitions stand below each other
_MOST_TICKS = 20
# In inches: a cell at most, the room around bubbles, and the size of one partition.
_CELL, _MARGIN = 0.4, 0.08
_NARROWEST, _LOWEST = 2.6, 1.8
_WIDEST = {1: 9.0, 2: 4.6, 3: 3.4}  # by the number of partitions side by side
_HIGHEST_ALONE, _HIGHEST = 6.0, 3.0
_COLOUR = "#0173b2"  # the first of the colour-blind palette
_POINTS_PER_INCH = 72


def find_partitions(runs: Sequence[ResultRun]) -> dict[str, str]:
    """Return the partitions of the first run's seed: a label and the file of each.

    The label says the settings that tell the partitions apart; it is empty for a single one.
    """
    points: dict[str, list[dict[str, AxisValue]]] = {}
    for run in runs:
        if run.settings[SEED] == runs[0].settings[SEED]:
            points.setdefault(run.partition, []).append(run.settings)
    axes = [name for name in runs[0].settings if _tells_apart(name, list(points.values()))]
    labels = [join_labels(axes, [group[0][axis] for axis in axes]) for group in points.values()]
    if len(set(labels)) < len(labels):  # told apart by nothing in the settings: name the folders
        labels = [Path(file).parent.name for file in points]
    return dict(zip(labels, points, strict=True))


def _tells_apart(name: str, groups: Sequence[Sequence[Mapping[str, AxisValue]]]) -> bool:
    """Whether a setting is the same throughout each partition, and not for all partitions."""
    values = [{str(point.get(name)) for point in group} for group in groups]
    return all(len(value) == 1 for value in values) and any(a != b for a, b in pairwise(values))


def read_histogram(path: str | Path) -> pd.DataFrame:
    """Read the samples of each client and class, of all roles together.

    Returns
    -------
    pandas.DataFrame
        Columns `client`, `label` and `samples`; a row a combination that occurs.

    Raises
    ------
    FedstageError
        If the file is missing, damaged or without rows.
    """
    table: pd.DataFrame = load_table(path, ["client", "label", "samples"]).to_pandas()
    if table.empty:
        raise FedstageError(f"{path}: has no rows, at least one client with a sample is required")
    return table.groupby(["client", "label"])["samples"].sum().reset_index()


def draw_partition(histograms: Mapping[str, pd.DataFrame], title: str, seed: AxisValue) -> Figure:
    """Draw partitions side by side, on one scale; at most `MOST_PARTITIONS` of them.

    Parameters
    ----------
    histograms : mapping of str to pandas.DataFrame
        For each partition its label, and its samples as `read_histogram` returns them.
    title : str
        Stands above the figure.
    seed : int
        The seed that the partitions were drawn with, to be told.
    """
    shown = dict(list(histograms.items())[:MOST_PARTITIONS])
    samples = pd.concat(shown.values())
    layout = _lay_out(samples, len(shown))
    with style():
        figure, grid = facet_grid(len(shown), layout.across, layout.size, beside=1.1)
        for axes, (label, histogram) in zip(grid, shown.items(), strict=True):
            axes.set_title(label)
            _draw_bubbles(axes, histogram, layout.points2_per_sample)
        set_axis_labels(grid, layout.across, "Client", "Class")
        _set_scales(grid[0], layout)
        handles = _legend_handles(int(samples["samples"].max()), layout.points2_per_sample)
        set_legend(figure, "Samples", handles, labelspacing=1.2)
        set_title(figure, title, f"Partition over clients (seed {seed})")
        set_note(figure, _note(len(shown), len(histograms)))
    return figure


@dataclass(frozen=True)
class _Layout:
    """How large everything is.

    Attributes
    ----------
    counts : tuple of int
        Numbers of clients and classes.
    across : int
        Partitions side by side.
    size, margin : tuple of float, float
        Width and height of one partition, and the room on every side for half a bubble: inches.
    points2_per_sample : float
        Area of a sample's share of a bubble.
    """

    counts: tuple[int, int]
    across: int
    size: tuple[float, float]
    margin: float
    points2_per_sample: float


def _lay_out(samples: pd.DataFrame, facets: int) -> _Layout:
    clients, classes = 1 + int(samples["client"].max()), 1 + int(samples["label"].max())
    across = facet_columns(facets) if clients <= _MOST_BESIDE else 1
    widest, highest = _WIDEST[across], _HIGHEST_ALONE if facets == 1 else _HIGHEST
    cell = min(_CELL, widest / clients, highest / classes)
    scale = _points2_per_sample(samples["samples"], cell)
    margin = _MARGIN + sqrt(scale * samples["samples"].max()) / 2 / _POINTS_PER_INCH
    width = _inches(clients, _NARROWEST, widest, margin)
    height = _inches(classes, _LOWEST, highest, margin)
    return _Layout((clients, classes), across, (width, height), margin, scale)


def _inches(count: int, least: float, most: float, margin: float) -> float:
    """Return the length of an axis with `count` cells and a margin on both sides."""
    return max(least, min(_CELL * (count - 1), most) + 2 * margin)


def _points2_per_sample(samples: pd.Series, cell: float) -> float:
    """Return the area of a sample: nearly all bubbles fit their cell, and none is above 1.5 of it.

    A fit of the very largest would shrink the others of a skewed partition to specks.
    """
    points = _POINTS_PER_INCH * cell
    return min(points**2 / float(samples.quantile(0.95)), (1.5 * points) ** 2 / int(samples.max()))


def _draw_bubbles(axes: Axes, histogram: pd.DataFrame, points2_per_sample: float) -> None:
    histogram = histogram.sort_values("samples", ascending=False, kind="stable")  # small on top
    axes.scatter(
        histogram["client"],
        histogram["label"],
        s=histogram["samples"] * points2_per_sample,
        color=_COLOUR,
        alpha=0.75,
        linewidth=0,
    )


def _set_scales(axes: Axes, layout: _Layout) -> None:
    """Show all clients and classes within the margins; facets share their scales."""
    clients, classes = layout.counts
    side = _beyond(clients, layout.size[0], layout.margin)
    above = _beyond(classes, layout.size[1], layout.margin)
    axes.set(xlim=(-side, clients - 1 + side), ylim=(-above, classes - 1 + above))
    axes.xaxis.set_major_locator(_ticks(clients))
    axes.yaxis.set_major_locator(_ticks(classes))


def _beyond(count: int, length: float, margin: float) -> float:
    """Return the margin in cells, of an axis of `length` inches."""
    return max(count - 1, 1) * margin / (length - 2 * margin)


def _ticks(count: int) -> Locator:
    """Return a tick for each of 0 to `count` - 1 while they are few."""
    return FixedLocator(range(count)) if count <= _MOST_TICKS else MaxNLocator(integer=True)


def _legend_handles(most: int, points2_per_sample: float) -> list[Line2D]:
    return [
        Line2D(
            [],
            [],
            linestyle="",
            marker="o",
            markersize=sqrt(samples * points2_per_sample),
            markeredgewidth=0,
            color=_COLOUR,
            alpha=0.75,
            label=f"{samples:,}",
        )
        for samples in legend_samples(most)
    ]


def legend_samples(most: int) -> list[int]:
    """Return up to three round numbers of samples, the largest at most `most`: 200, 50, 10."""
    decade = floor(log10(most))
    rounds = [step * 10**power for power in range(decade + 1) for step in (1, 2, 5)]
    return [samples for samples in rounds if samples <= most][::-1][:5:2]


def _note(shown: int, all_: int) -> str:
    note = "Bubble area: number of the client's samples of the class, training and validation."
    return note + (f" {shown} of {all_} partitions are shown." if shown < all_ else "")
