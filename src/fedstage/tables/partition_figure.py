"""A partition as papers draw it: a bubble a client and class, its area the number of samples."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import floor, log10, sqrt
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, Locator, MaxNLocator

from fedstage.artefacts import load_table
from fedstage.errors import FedstageError
from fedstage.tables.figures import (
    facet_columns,
    facet_grid,
    set_axis_labels,
    set_legend,
    set_note,
    set_title,
    style,
)
from fedstage.tables.labels import join_labels
from fedstage.tables.runs import SEED, AxisValue, ResultRun

MOST_PARTITIONS = 6
_MOST_BESIDE = 30  # clients; with more, partitions stand below each other
_MOST_TICKS = 20
_CELL, _SMALLEST, _MARGIN = 0.34, (2.6, 1.8), 0.08  # inches
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
    clients, classes = 1 + int(samples["client"].max()), 1 + int(samples["label"].max())
    most = int(samples["samples"].max())
    across = facet_columns(len(shown)) if clients <= _MOST_BESIDE else 1
    cell = _cell_inches(clients, classes, across, len(shown))
    scale = _points2_per_sample(samples["samples"], min(cell))
    margin = _MARGIN + sqrt(scale * most) / 2 / _POINTS_PER_INCH
    size = ((clients - 1) * cell[0] + 2 * margin, (classes - 1) * cell[1] + 2 * margin)
    with style():
        figure, grid = facet_grid(len(shown), across, size, beside=1.1)
        for axes, (label, histogram) in zip(grid, shown.items(), strict=True):
            axes.set_title(label)
            _draw_bubbles(axes, histogram, scale)
        set_axis_labels(grid, across, "Client", "Class")
        _set_scales(grid[0], (clients, classes), (margin / cell[0], margin / cell[1]))
        set_legend(figure, "Samples", _legend_handles(most, scale), labelspacing=1.2)
        set_title(figure, title, f"Partition over clients (seed {seed})")
        set_note(figure, _note(len(shown), len(histograms)))
    return figure


def _cell_inches(clients: int, classes: int, across: int, facets: int) -> tuple[float, float]:
    """Return the width and height of a client's and class's cell, for a figure that fits a page."""
    widest, highest = {1: 9.0, 2: 4.6, 3: 3.4}[across], 6.0 if facets == 1 else 3.0
    width = min(max(_CELL, _SMALLEST[0] / clients), widest / clients)
    return width, min(max(_CELL, _SMALLEST[1] / classes), highest / classes)


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


def _set_scales(axes: Axes, counts: tuple[int, int], margins: tuple[float, float]) -> None:
    """Show clients and classes from 0 on, with `margins` (in cells) around; facets share scales."""
    (clients, classes), (side, above) = counts, margins
    axes.set(xlim=(-side, clients - 1 + side), ylim=(-above, classes - 1 + above))
    axes.xaxis.set_major_locator(_ticks(clients))
    axes.yaxis.set_major_locator(_ticks(classes))


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
