"""Partitions as in papers: one bubble per client and class, its area the number of samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from math import sqrt
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedFormatter, FixedLocator

from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import SEED, ExperimentRun
from fedstage.results.figures.looks import COLOURS
from fedstage.results.figures.names import NUMBERS, Names, name_of, shorten
from fedstage.results.figures.rounds import round_numbers
from fedstage.results.figures.style import (
    EM,
    PAGE,
    SMALL,
    Facets,
    axes_width,
    facet_columns,
    figure_width,
    style,
)
from fedstage.results.tables.labels import join_labels
from fedstage.settings.scores import Axis
from fedstage.storage.tables import frame_of, load_table

MOST_PARTITIONS = 6
_MOST_BESIDE = 30  # clients; with more, partitions are below one another
_MOST_TICKS = 20
_FEW = 12  # clients that fit a column of a paper
# In inches: the largest cell, the room around bubbles, and the height of one partition.
_CELL, _MARGIN = 0.3, 0.06
_LOW, _STEEPEST = 0.16, 2.0  # the height of a cell, if it is not more than two widths
_LOWEST, _HIGHEST_ALONE, _HIGHEST = 0.8, 4.5, 2.4
_PAGE_HEIGHT, _BETWEEN = 8.0, 0.5  # of a page, and between partitions below one another
_LEFT = 0.4  # inches left of names of classes
_LINE = 1.4 / 72  # inches of a line, for each point of its font
_COLOUR = COLOURS[0]
_POINTS_PER_INCH = 72


def find_partitions(runs: Sequence[ExperimentRun]) -> dict[str, str]:
    """Return the label and the file of each partition with the first run's seed.

    The label has the settings that distinguish the partitions; it is empty for a single one.
    """
    points: dict[str, list[dict[str, Axis]]] = {}
    for run in runs:
        if run.settings[SEED] == runs[0].settings[SEED]:
            points.setdefault(run.partition, []).append(run.settings)
    axes = [name for name in runs[0].settings if _tells_apart(name, list(points.values()))]
    labels = [join_labels(axes, [group[0][axis] for axis in axes]) for group in points.values()]
    if len(set(labels)) < len(labels):  # no settings distinguish them: name the folders
        labels = [Path(file).parent.name for file in points]
    return dict(zip(labels, points, strict=True))


def _tells_apart(name: str, groups: Sequence[Sequence[Mapping[str, Axis]]]) -> bool:
    """Whether a setting is constant within each partition, but not across partitions."""
    values = [{str(point.get(name)) for point in group} for group in groups]
    return all(len(value) == 1 for value in values) and any(a != b for a, b in pairwise(values))


def read_histogram(path: str | Path) -> pd.DataFrame:
    """Read the samples of each client and class, of all roles together.

    The columns are `client`, `label` and `samples`; a file without rows raises FedstageError.
    """
    table: pd.DataFrame = frame_of(load_table(path, ["client", "label", "samples"]))
    if table.empty:
        raise FedstageError(f"{path}: has no rows, at least one client with a sample is required")
    return table.groupby(["client", "label"])["samples"].sum().reset_index()


@style()
def draw_partition(histograms: Mapping[str, pd.DataFrame], names: Names = NUMBERS) -> Figure:
    """Draw partitions side by side, on one scale; at most `MOST_PARTITIONS` of them.

    `histograms` are the samples of each partition by its label, as `read_histogram` returns them.
    Up to `_MOST_TICKS` clients, or classes, have their `names`.
    """
    shown = dict(list(histograms.items())[:MOST_PARTITIONS])
    samples = pd.concat(shown.values())
    layout = _lay_out(samples, len(shown), names)
    handles = _legend_handles(int(samples["samples"].max()), layout.points2_per_sample)
    facets = Facets(
        list(shown),
        layout.size[1],
        handles,
        "Samples",
        across=layout.across,
        width=layout.width,
        left=layout.left,
        more=layout.below,
        handle=max(0.7, *(0.4 + handle.get_markersize() / SMALL for handle in handles)),
    )
    for axes, histogram in zip(facets.grid, shown.values(), strict=True):
        _draw_bubbles(axes, histogram, layout.points2_per_sample)
    facets.label_axes("Client", "Class")
    _set_scales(facets.grid[0], layout, names)
    for axes in facets.grid:
        _name_ticks(axes, layout, names)
    return facets.figure


def describe_partition(partitions: int, seed: Axis) -> str:
    """Return the caption's text on the bubbles of `draw_partition`."""
    text = (
        "Area of a bubble: the number of a client's samples of a class, training and validation "
        f"together, for seed {seed}."
    )
    if partitions > MOST_PARTITIONS:
        text += f" {MOST_PARTITIONS} of {partitions} partitions are shown."
    return text


@dataclass(frozen=True)
class _Layout:
    """The sizes of a figure."""

    counts: tuple[int, int]  # of clients and classes
    across: int  # partitions side by side
    width: float  # of the figure, in inches
    left: float  # inches left of the axes
    below: float  # inches that turned names take below them
    size: tuple[float, float]  # of one partition, in inches
    margin: float  # around its bubbles' centres, in inches
    points2_per_sample: float  # area of a bubble per sample


def _lay_out(samples: pd.DataFrame, facets: int, names: Names) -> _Layout:
    clients, classes = 1 + int(samples["client"].max()), 1 + int(samples["label"].max())
    across = facet_columns(facets) if clients <= _MOST_BESIDE else 1
    width = PAGE if clients > _FEW else figure_width(across)
    left = _LEFT + EM * SMALL * _longest(names.classes, classes)
    wide, down = axes_width(width, across, left), -(-facets // across)
    highest = _HIGHEST_ALONE if facets == 1 else min(_HIGHEST, _PAGE_HEIGHT / down - _BETWEEN)
    cell = min(_CELL, wide / clients, highest / classes)
    scale = _points2_per_sample(samples["samples"], cell)
    margin = _MARGIN + sqrt(scale * samples["samples"].max()) / 2 / _POINTS_PER_INCH
    high = min(_CELL, max(_LOW, _STEEPEST * wide / clients))
    height = max(_LOWEST, min(high * (classes - 1), highest) + 2 * margin)
    longest = _longest(names.clients, clients)
    turned = names.clients is not None and (longest + 1) * SMALL * EM > wide / clients
    below = longest * SMALL * EM if turned else 0.0
    return _Layout((clients, classes), across, width, left, below, (wide, height), margin, scale)


def _longest(names: Sequence[str] | None, count: int) -> int:
    """Return the characters of the longest tick on an axis with some names, or numbers."""
    shown = tick_names(count, names)
    return len(str(count - 1)) if shown is None else max(map(len, shown))


def _points2_per_sample(samples: pd.Series, cell: float) -> float:
    """Return the area per sample for which 95 % of the bubbles fit their cells.

    No bubble is wider than 1.5 cells. If the largest had to fit as well, the other bubbles of a
    skewed partition would shrink to specks.
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


def _set_scales(axes: Axes, layout: _Layout, names: Names) -> None:
    """Show all clients and classes within the margins; facets share their scales."""
    known = (names.clients, names.classes)
    for axis, count, length, named in zip("xy", layout.counts, layout.size, known, strict=True):
        margin = max(count - 1, 1) * layout.margin / (length - 2 * layout.margin)  # in cells
        axes.set(**{f"{axis}lim": (-margin, count - 1 + margin)})
        text = SMALL * (EM * (len(str(count)) + 0.6) if axis == "x" else _LINE)
        fit = _MOST_TICKS if named else min(_MOST_TICKS, int(length / text))
        getattr(axes, f"{axis}axis").set_major_locator(FixedLocator(ticks_of(count, fit)))


def ticks_of(count: int, most: int) -> range:
    """Return at most `most` numbers below `count`, in steps of 1, 2, 5, 10, 20 and so on."""
    fits = (step for step in round_numbers() if -(-count // step) <= max(1, most))
    return range(0, count, next(fits))


def _name_ticks(axes: Axes, layout: _Layout, names: Names) -> None:
    """Show names instead of numbers; clients' names are turned if they may not fit."""
    for axis, count, known in zip("xy", layout.counts, (names.clients, names.classes), strict=True):
        shown = tick_names(count, known)
        if shown is None:
            continue
        getattr(axes, f"{axis}axis").set_major_formatter(FixedFormatter(shown))
        if axis == "x" and layout.below:
            axes.tick_params(axis="x", labelrotation=90)


def tick_names(count: int, names: Sequence[str] | None) -> list[str] | None:
    """Return the labels at the ticks of clients or classes, None for their numbers."""
    if names is None or count > _MOST_TICKS:
        return None
    return [shorten(name_of(number, names)) for number in range(count)]


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
    """Return up to three round numbers up to `most`, in descending order: 200, 50, 10."""
    return [*takewhile(lambda samples: samples <= most, round_numbers())][::-1][:5:2]
