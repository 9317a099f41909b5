"""What all figures share: style, the grid of facets, texts around it, and reproducible files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isnan
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib as mpl
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedstage.errors import FedstageError
from fedstage.storage.files import replacing

Colour = tuple[float, float, float]
#: Of points, in their order.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
#: Of one standard deviation.
BAND: dict[str, Any] = {"alpha": 0.18, "linewidth": 0}

_DPI = 150
_TITLE_CHARACTERS, _NOTE_CHARACTERS = 9.8, 14.0  # per inch
_LEFT, _BETWEEN, _AROUND = 0.6, 0.7, 0.6  # inches that labels, titles and the note take
#: Neither a date nor the version of the drawing library goes into a file.
_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
}


@contextmanager
def style() -> Iterator[None]:
    """Draw in the style of the figures, and restore the defaults of the process afterwards."""
    with mpl.rc_context(
        {
            **sns.axes_style("whitegrid"),
            **sns.plotting_context("paper", font_scale=1.1),
            "axes.edgecolor": "0.3",
            "grid.color": "0.9",
            "axes.titlesize": "medium",
            "text.parse_math": False,  # a name with $ is no formula
            "svg.hashsalt": "fedstage",  # element ids are random otherwise
        }
    ):
        yield


def facet_columns(facets: int) -> int:
    """Return the number of facets side by side: at most three, and four as two by two."""
    return facets if facets <= 3 else 2 if facets == 4 else 3


class Facets:
    """A figure of axes that share their scales, with a title, a legend on the right and a note.

    Parameters
    ----------
    labels : sequence of str
        The title of each axes.
    size : tuple of float
        Width and height of each axes, in inches.
    beside : float
        Width of the legend, in inches.
    across : int, optional
        Number of axes side by side, by default `facet_columns`.
    common : bool
        Whether all axes have the same y scale, or only those of a column.
    """

    def __init__(
        self,
        labels: Sequence[str],
        size: tuple[float, float],
        beside: float,
        across: int | None = None,
        common: bool = True,
    ) -> None:
        self.across = across or facet_columns(len(labels))
        down = -(-len(labels) // self.across)
        width = self.across * (size[0] + 0.1) + _LEFT + beside
        height = down * (size[1] + _BETWEEN) + _AROUND
        self.figure = Figure(figsize=(width, height), layout="constrained")
        grid = self.figure.subplots(
            down,
            self.across,
            sharex=True,
            sharey="all" if common else "col",
            squeeze=False,
        )
        every = list(grid.ravel())
        for unused in every[len(labels) :]:
            unused.remove()
        self.grid: list[Axes] = every[: len(labels)]
        for axes, label in zip(self.grid, labels, strict=True):
            axes.set_title(label)

    def label_axes(self, x: str, y: str) -> None:
        """Label the x axis of the lowest axes of each column, and the y axis of the first one."""
        for index, axes in enumerate(self.grid):
            lowest = index + self.across >= len(self.grid)
            axes.set_xlabel(x if lowest else "")
            axes.tick_params(labelbottom=lowest)  # also where the row below has a gap
            axes.set_ylabel(y if index % self.across == 0 else "")

    def annotate(
        self,
        *title: str,
        note: str,
        legend: str,
        handles: Sequence[Line2D],
        labelspacing: float = 0.5,
    ) -> Figure:
        """Add the lines of the title, the legend of all axes and the note; return the figure."""
        if handles:
            self.figure.legend(
                handles=handles,
                title=legend,
                loc="outside right center",
                frameon=False,
                alignment="left",
                labelspacing=labelspacing,
            )
        width = self.figure.get_figwidth()
        lines = [fill(line, int(width * _TITLE_CHARACTERS)) for line in title]
        self.figure.suptitle("\n".join(lines), fontsize="large", fontweight="bold")
        note = fill(note, int(width * _NOTE_CHARACTERS))
        self.figure.supxlabel(note, fontsize="small", color="0.35")
        return self.figure


def colours_of(names: Sequence[str]) -> dict[str, Colour]:
    """Return a colour for each name; up to ten are told apart by colour-blind readers."""
    most = len(sns.color_palette("colorblind"))
    kind = "colorblind" if len(names) <= most else "husl"
    return dict(zip(names, sns.color_palette(kind, len(names)), strict=True))


def draw_level(axes: Axes, mean: float, deviation: float, colour: Colour, width: float) -> None:
    """Draw a dashed horizontal line, and a band of one deviation unless that is nan."""
    axes.axhline(mean, color=colour, linestyle="--", linewidth=width)
    if not isnan(deviation):
        axes.axhspan(mean - deviation, mean + deviation, color=colour, **BAND)


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG or SVG, by its suffix; the same figure gives the same bytes."""
    kind = path.suffix.removeprefix(".").lower()
    if kind not in _METADATA:
        raise FedstageError(f"{path}: suffix = {path.suffix!r}: must be .png or .svg")
    options: dict[str, Any] = {"format": kind, "dpi": _DPI, "metadata": _METADATA[kind]}
    with style(), replacing(path) as temporary:
        figure.savefig(temporary, bbox_inches="tight", **options)
