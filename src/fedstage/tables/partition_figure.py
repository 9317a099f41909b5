"""A partition as papers draw it: a bubble a client and class, its area the number of samples."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import floor, log10, sqrt
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, MaxNLocator

from fedstage.artefacts import load_table
from fedstage.errors import FedstageError
from fedstage.tables.figures import facet_grid, set_note, set_title, style
from fedstage.tables.labels import join_labels
from fedstage.tables.runs import SEED, Axis, ResultRun

MOST_PARTITIONS = 6
_FACET_COLUMNS = 3
_MOST_TICKS = 20
_COLOUR = "#0173b2"  # the first of the colour-blind palette
_POINTS_PER_INCH = 72


def find_partitions(runs: Sequence[ResultRun]) -> dict[str, str]:
    """Return the partitions of the first run's seed: a label and the file of each.

    The label says the settings that tell the partitions apart; it is empty for a single one.
    """
    points: dict[str, list[dict[str, Axis]]] = {}
    for run in runs:
        if run.settings[SEED] == runs[0].settings[SEED]:
            points.setdefault(run.partition, []).append(run.settings)
    axes = [name for name in runs[0].settings if _tells_apart(name, list(points.values()))]
    labels = [join_labels(axes, [group[0][axis] for axis in axes]) for group in points.values()]
    if len(set(labels)) < len(labels):  # told apart by nothing in the settings: name the folders
        labels = [Path(file).parent.name for file in points]
    return dict(zip(labels, points, strict=True))


def _tells_apart(name: str, groups: Sequence[Sequence[Mapping[str, Axis]]]) -> bool:
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


def draw_partition(histograms: Mapping[str, pd.DataFrame], title: str, seed: Axis) -> Figure:
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
    clients = 1 + max(int(histogram["client"].max()) for histogram in shown.values())
    classes = 1 + max(int(histogram["label"].max()) for histogram in shown.values())
    most = max(int(histogram["samples"].max()) for histogram in shown.values())
    cell = _cell_inches(clients, classes, len(shown))
    diameter = _POINTS_PER_INCH * min(cell)
    with style():
        size = (cell[0] * clients, cell[1] * classes)
        figure, grid = facet_grid(len(shown), _FACET_COLUMNS, *size, beside=1.1)
        for axes, (label, histogram) in zip(grid, shown.items(), strict=True):
            axes.set_title(label)
            _draw_bubbles(axes, histogram, diameter**2 / most)
        _label_axes(grid, clients, classes)
        figure.legend(
            handles=_legend_handles(most, diameter),
            title="Samples",
            loc="outside right center",
            frameon=False,
            alignment="left",
            labelspacing=1.2,
        )
        set_title(figure, title, f"Partition over clients (seed {seed})")
        set_note(figure, _note(len(shown), len(histograms)))
    return figure


def _cell_inches(clients: int, classes: int, facets: int) -> tuple[float, float]:
    """Return the width and height of a client's and class's cell, for a figure that fits a page."""
    width, height = (7.0, 6.0) if facets == 1 else (3.6, 3.6)
    return min(0.34, width / clients), min(0.34, height / classes)


def _draw_bubbles(axes: Axes, histogram: pd.DataFrame, points2_per_sample: float) -> None:
    axes.scatter(
        histogram["client"],
        histogram["label"],
        s=histogram["samples"] * points2_per_sample,
        color=_COLOUR,
        alpha=0.8,
        linewidth=0,
    )


def _label_axes(grid: Sequence[Axes], clients: int, classes: int) -> None:
    for axes in grid:
        axes.set(xlabel="Client", xlim=(-0.7, clients - 0.3), ylim=(-0.7, classes - 0.3))
        if axes.get_subplotspec().is_first_col():  # type: ignore[union-attr]
            axes.set_ylabel("Class")
        for axis, count in ((axes.xaxis, clients), (axes.yaxis, classes)):
            few = count <= _MOST_TICKS
            axis.set_major_locator(
                FixedLocator(range(count)) if few else MaxNLocator(integer=True, min_n_ticks=1)
            )


def _legend_handles(most: int, diameter: float) -> list[Line2D]:
    return [
        Line2D(
            [],
            [],
            linestyle="",
            marker="o",
            markersize=diameter * sqrt(samples / most),
            markeredgewidth=0,
            color=_COLOUR,
            alpha=0.8,
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
