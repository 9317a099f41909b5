"""Common parts of all figures: style and sizes for print, grids of facets, reproducible files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import Any, Literal

import matplotlib as mpl
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedstage.errors import FedstageError
from fedstage.storage.files import replacing, save_text

#: Inches of a figure in print: the width of one column of a paper, or of both.
COLUMN, PAGE = 3.4, 6.9
TEXT, SMALL = 8.0, 7.0  # points: of labels, and of ticks and legends

EM = 0.62 / 72  # inches a character takes on average, for each point of its font
#: The line between a scale and points that are not on it.
RULE: dict[str, Any] = {"color": "0.75", "linewidth": 0.6, "zorder": 0}

_DPI = 300
_LINE = 1.45 / 72  # inches a line of text takes, for each point of its font
_HANDLE = 0.42  # inches of a legend's entry next to its text
_LEFT = 0.55  # inches that the label and ticks of the y axis take
#: Neither a date nor the version of the drawing library goes into a file.
_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
_CAPTION = "txt"


@contextmanager
def style() -> Iterator[None]:
    """Draw in the style of the figures, and restore the defaults of the process afterwards."""
    with mpl.rc_context(
        {
            **sns.axes_style("ticks"),
            **sns.plotting_context("paper"),
            **dict.fromkeys(("font.size", "axes.labelsize", "axes.titlesize"), TEXT),
            **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), SMALL),
            "legend.title_fontsize": SMALL,
            **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), 0.6),
            **dict.fromkeys(("xtick.major.size", "ytick.major.size"), 2.5),
            **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
            **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), "0.2"),
            "axes.grid": True,
            "axes.axisbelow": True,
            "grid.color": "0.9",
            "grid.linewidth": 0.5,
            "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same on all machines
            "text.parse_math": False,  # a name with $ is no formula
            "svg.fonttype": "none",  # text as text: to be searched, edited and read aloud
            "pdf.fonttype": 42,
            "svg.hashsalt": "fedstage",  # element ids are random otherwise
        }
    ):
        yield


def facet_columns(facets: int) -> int:
    """Return the number of facets side by side: at most three, but four are two by two."""
    return facets if facets <= 3 else 2 if facets == 4 else 3


class Facets:
    """A figure of axes that share their scales, with a legend below them and no other text.

    The figure is as wide as a column, or as a page if axes are side by side. All other text is in
    the caption, which is not part of the picture.

    Parameters
    ----------
    labels : sequence of str
        The label of each axes; single axes have none.
    height : float
        Height of each axes, in inches.
    handles : sequence of Line2D
        The entries of the legend, if any.
    legend : str
        The title of the legend, if it needs one.
    across : int, optional
        Number of axes side by side, by default `facet_columns`.
    width : float, optional
        The width of the figure, in inches.
    left : float
        Inches that the label and ticks of the y axis take.
    share_x : bool
        Whether all axes have the same x scale.
    share_y : bool or str
        Whether all axes have the same y scale, or all in one column or row.
    more : float
        Inches below axes that turned labels of ticks take.
    handle : float
        Height of the largest handle in the legend, in sizes of its font.
    """

    def __init__(
        self,
        labels: Sequence[str],
        height: float,
        handles: Sequence[Line2D] = (),
        legend: str = "",
        *,
        across: int | None = None,
        width: float | None = None,
        left: float = _LEFT,
        share_x: bool = True,
        share_y: bool | Literal["all", "col", "row"] = True,
        more: float = 0.0,
        handle: float = 0.7,
    ) -> None:
        self.across = across or facet_columns(len(labels))
        down = -(-len(labels) // self.across)
        self.width = width or figure_width(self.across)
        #: Approximate size of each axes, in inches.
        self.axes_width = axes_width(self.width, self.across, left)
        titles = [self._fold(label) for label in labels] if len(labels) > 1 else [""]
        lines = max(title.count("\n") + 1 if title else 0 for title in titles)
        below = 0.2 if share_x else 0.4  # ticks, and the label as well if scales differ
        entries = self._entries(handles)
        self._share_x = share_x
        self.figure = Figure(
            figsize=(
                self.width,
                down * (height + lines * TEXT * _LINE + below)
                + (0.25 if share_x else 0.05)
                + more
                + -(-len(handles) // entries) * SMALL * (0.75 + handle) / 72
                + (0.3 if handles else 0.05),
            ),
            layout="constrained",
        )
        grid = self.figure.subplots(
            down, self.across, sharex=share_x, sharey=share_y, squeeze=False
        )
        every = list(grid.ravel())
        for unused in every[len(labels) :]:
            unused.remove()
        self.grid: list[Axes] = every[: len(labels)]
        for axes, title in zip(self.grid, titles, strict=True):
            axes.set_title(title)
        if handles:
            self._add_legend(handles, legend, entries, handle)

    def _fold(self, text: str) -> str:
        """Break a text into lines if it is wider than one axes."""
        most = max(8, int(self.axes_width / (TEXT * EM)))
        return "\n".join(fill(line, most) for line in text.split("\n"))

    def _entries(self, handles: Sequence[Line2D]) -> int:
        """Return how many entries of the legend fit side by side."""
        longest = max((len(str(handle.get_label())) for handle in handles), default=1)
        fit = int(self.width / (_HANDLE + longest * SMALL * EM))
        rows = -(-len(handles) // max(1, fit))
        return max(1, -(-len(handles) // max(1, rows)))

    def _add_legend(
        self, handles: Sequence[Line2D], title: str, entries: int, handle: float
    ) -> None:
        self.figure.legend(
            handles=handles,
            title=title or None,
            loc="outside lower center",
            ncols=entries,
            frameon=False,
            borderpad=0.2,
            handlelength=max(2.6, handle),
            handleheight=handle,
            handletextpad=0.5,
            columnspacing=1.2,
            labelspacing=0.4,
        )

    def label_axes(self, x: str, y: str) -> None:
        """Label the x axis of the lowest axes of each column, and the y axis of the first one."""
        for index, axes in enumerate(self.grid):
            lowest = index + self.across >= len(self.grid)
            axes.set_xlabel(self._fold(x) if lowest else "")
            axes.tick_params(labelbottom=lowest or not self._share_x)  # also above a gap
            axes.set_ylabel(y if index % self.across == 0 else "")


def figure_width(across: int) -> float:
    """Return the width of a figure with some axes side by side, in inches."""
    return COLUMN if across == 1 else PAGE


def axes_width(width: float, across: int, left: float = _LEFT) -> float:
    """Return the approximate width, in inches, of `across` axes side by side in a figure."""
    return (width - left) / across - 0.12


def save_figure(figure: Figure, paths: Sequence[Path], caption: str = "") -> None:
    """Write a figure to each path as PNG, SVG or PDF, or its caption as text, by the suffix.

    The same figure gives the same bytes. The caption is written without Markdown's bold.

    Raises
    ------
    FedstageError
        If a path has another suffix; nothing is written then.
    """
    kinds = [path.suffix.removeprefix(".").lower() for path in paths]
    for path, kind in zip(paths, kinds, strict=True):
        if kind not in (*_METADATA, _CAPTION):
            allowed = "must be .png, .svg, .pdf, or .txt for its caption"
            raise FedstageError(f"{path}: suffix = {path.suffix!r}: {allowed}")
    for path, kind in zip(paths, kinds, strict=True):
        if kind == _CAPTION:
            # On its own line, part of a title could be a directive of the report's captions.
            save_text(path, f"{' '.join(caption.replace('**', '').split())}\n")
        else:
            _draw_file(figure, path, kind)


def _draw_file(figure: Figure, path: Path, kind: str) -> None:
    options: dict[str, Any] = {"format": kind, "dpi": _DPI, "metadata": _METADATA[kind]}
    with style(), replacing(path) as temporary:
        figure.savefig(temporary, **options)
