"""What all figures share: style, the grid of facets, the title, and files of reproducible bytes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
    """Draw in the style of the figures; the defaults of the process are as before afterwards."""
    with mpl.rc_context(
        {
            **sns.axes_style("whitegrid"),
            **sns.plotting_context("paper", font_scale=1.1),
            "axes.edgecolor": "0.3",
            "grid.color": "0.9",
            "axes.titlesize": "medium",
            "svg.hashsalt": "fedstage",  # element ids are random otherwise
        }
    ):
        yield


def facet_columns(facets: int) -> int:
    """Return how many facets stand side by side: at most three, and four as two by two."""
    return facets if facets <= 3 else 2 if facets == 4 else 3


def facet_grid(
    facets: int, columns: int, size: tuple[float, float], beside: float
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its axes, which share their scales.

    Parameters
    ----------
    facets, columns : int
        Number of axes, and how many of them stand side by side.
    size : tuple of float
        Width and height of each axes, in inches.
    beside : float
        Width of the legend on the right, in inches.
    """
    width, height = size
    rows = -(-facets // columns)
    figure = Figure(
        figsize=(columns * (width + 0.1) + _LEFT + beside, rows * (height + _BETWEEN) + _AROUND),
        layout="constrained",
    )
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for unused in grid[facets:]:
        unused.remove()
    return figure, list(grid[:facets])


def colours_of(names: Sequence[str]) -> dict[str, Colour]:
    """Return colours that colour-blind readers tell apart while there are at most ten."""
    most = len(sns.color_palette("colorblind"))
    kind = "colorblind" if len(names) <= most else "husl"
    return dict(zip(names, sns.color_palette(kind, len(names)), strict=True))


def set_axis_labels(grid: Sequence[Axes], columns: int, x: str, y: str) -> None:
    """Label the x axis of the lowest axes of each column, and the y axis of the first column."""
    for index, axes in enumerate(grid):
        lowest = index + columns >= len(grid)
        axes.set_xlabel(x if lowest else "")
        axes.tick_params(labelbottom=lowest)  # also where the row below has a gap
        axes.set_ylabel(y if index % columns == 0 else "")


def set_legend(
    figure: Figure, title: str, handles: Sequence[Line2D], labelspacing: float = 0.5
) -> None:
    """Put the legend of all facets on the right, outside of them."""
    figure.legend(
        handles=handles,
        title=title,
        loc="outside right center",
        frameon=False,
        alignment="left",
        labelspacing=labelspacing,
    )


def set_title(figure: Figure, *lines: str) -> None:
    """Write the title above all facets; each of its lines takes as many as it needs."""
    width = int(figure.get_figwidth() * _TITLE_CHARACTERS)
    text = "\n".join(fill(line, width) for line in lines)
    figure.suptitle(text, fontsize="large", fontweight="bold")


def set_note(figure: Figure, note: str) -> None:
    """Write below all facets what a reader must know to read the figure."""
    width = int(figure.get_figwidth() * _NOTE_CHARACTERS)
    figure.supxlabel(fill(note, width), fontsize="small", color="0.35")


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG or SVG; the same figure gives the same bytes.

    Raises
    ------
    FedstageError
        If the suffix is neither ``.png`` nor ``.svg``.
    """
    kind = path.suffix.removeprefix(".").lower()
    if kind not in _METADATA:
        raise FedstageError(f"{path}: suffix = {path.suffix!r}: must be .png or .svg")
    options: dict[str, Any] = {"format": kind, "dpi": _DPI, "metadata": _METADATA[kind]}
    with style(), replacing(path) as temporary:
        figure.savefig(temporary, bbox_inches="tight", **options)
