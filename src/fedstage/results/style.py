"""Common parts of figures: theme, a look for each method, facets, and reproducible files."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from math import inf, nan
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import matplotlib as mpl
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedstage.errors import FedstageError
from fedstage.results.labels import place_label
from fedstage.results.statistics import confidence_interval
from fedstage.results.tidy import METHOD, SEED, Header
from fedstage.settings.experiments import Bands, Colour, Marker, Style
from fedstage.storage.files import replacing

_T = TypeVar("_T")

#: Okabe and Ito's colours for readers with any colour vision, but Tol's wine instead of yellow,
#: which is invisible on white, and three more for many methods; grey only for those that ask.
PALETTE: dict[Colour, str] = {
    "blue": "#0072B2", "vermilion": "#D55E00", "green": "#009E73", "pink": "#CC79A7",
    "black": "#000000", "orange": "#E69F00", "sky": "#56B4E9", "wine": "#882255",
    "indigo": "#332288", "olive": "#999933", "brown": "#7A4A1E", "grey": "#767676",
}  # fmt: skip
MARKERS: dict[Marker, str] = {
    "circle": "o", "square": "s", "triangle_up": "^", "diamond": "D", "triangle_down": "v",
    "plus": "P", "triangle_left": "<", "triangle_right": ">",
}  # fmt: skip
LINE, FACET = "_line", "_facet"  # columns that `placed` adds
WIDEST = 10  # factor between the least and the largest value of a linear scale
FEWEST = 3  # seeds from which a band or bar is drawn
_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


@contextmanager
def theme() -> Iterator[None]:
    """Draw in the theme of the figures, and restore the defaults of the process afterwards."""
    own: dict[Any, Any] = {
        "axes.grid": True,
        "axes.grid.axis": "y",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "grid.color": "0.9",
        "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same on all machines
        "text.parse_math": False,  # a name with $ is no formula
        "svg.fonttype": "none",  # text as text: to be searched, edited and read aloud
        "pdf.fonttype": 42,
        "svg.hashsalt": "fedstage",  # element ids are random otherwise
        "lines.linewidth": 1.3,
        "lines.markersize": 5,
    }
    with mpl.rc_context(sns.axes_style("ticks") | sns.plotting_context("paper") | own):
        yield


class Looks(NamedTuple):
    """The colours, markers and dashes of lines, by their labels, as seaborn takes them."""

    palette: dict[str, str]
    markers: dict[str, str]
    dashes: dict[str, Any]


def line_axis(header: Header, but: Sequence[str] = ()) -> str:
    """Return the axis of the lines: the method, or else the first other axis but some."""
    axes = [axis for axis in header.shown if axis not in but] or header.rows
    return METHOD if METHOD in axes else axes[0]


def looks_of(header: Header, but: Sequence[str] = ()) -> Looks:
    """Return a look for each line of an experiment, the same in all its figures.

    `methods.yaml` gives a method's colour and marker, or it gets the next that none has. Lines
    of the same colour have different markers and dashes.
    """
    axis = line_axis(header, but)
    values = list(dict.fromkeys(str(cell.axes[axis]) for cell in header.cells))
    styles = [header.styles.get(value, Style()) if axis == METHOD else Style() for value in values]
    free: Iterator[Colour] = _unused(tuple(PALETTE)[:-1], {style.colour for style in styles})
    marks: Iterator[Marker] = _unused(tuple(MARKERS), {style.marker for style in styles})
    looks, seen = Looks({}, {}, {}), defaultdict[str, list[Marker]](list)
    shown = {str(cell.axes[axis]): cell.axes[axis] for cell in header.cells}
    for value, style in zip(values, styles, strict=True):
        name = place_label([axis], {axis: shown[value]}, header)
        named = next(free) if style.colour is None else style.colour
        others = (one for one in islice(marks, len(MARKERS)) if one not in seen[named])
        mark: Marker = next(others, "circle") if style.marker is None else style.marker
        looks.palette[name], looks.markers[name] = PALETTE[named], MARKERS[mark]
        looks.dashes[name] = ("", (4, 1.5), (1.2, 1.2), (5, 1.2, 1.2, 1.2))[len(seen[named]) % 4]
        seen[named].append(mark)
    return looks


def _unused(every: Sequence[_T], taken: Collection[object]) -> Iterator[_T]:
    """Yield what is not taken, and then all in turn."""
    yield from (one for one in every if one not in taken)
    yield from cycle(every)


def placed(frame: pd.DataFrame, header: Header, but: Sequence[str] = ()) -> pd.DataFrame:
    """Add the line and the facet of each row: its place on all other axes that vary."""
    axis = line_axis(header, but)
    axes = [name for name in header.shown if name not in (axis, *but)]
    varying = [name for name in axes if frame[name].nunique(dropna=False) > 1]
    rows = frame[[axis, *varying]].astype(object).to_dict("records")
    lines = [place_label([axis], row, header) for row in rows]
    return frame.assign(**{LINE: lines, FACET: [place_label(varying, row, header) for row in rows]})


def ends_of(bands: Bands, least: float = 0.0) -> Callable[[Any], tuple[float, float]] | None:
    """Return what gives the ends of a band or bar: of an interval (Student) or a deviation.

    They are at least `least`, and at most 100, for values are percentages.
    """
    if bands == "none":
        return None

    def ends(values: Any) -> tuple[float, float]:
        known = [float(value) for value in values]
        if len(known) < FEWEST:
            return nan, nan
        found = confidence_interval(known)
        half = found.high - found.mean
        if bands == "deviation":
            half = float(pd.Series(known).std())
        return max(least, found.mean - half), min(100.0, found.mean + half)

    return ends


def bands_of(frame: pd.DataFrame, header: Header, most: float = inf) -> Bands:
    """Return what bands or bars show: nothing of too few seeds, or of more than `most` lines."""
    few = frame[SEED].nunique() < FEWEST
    return "none" if few or frame[LINE].nunique() > most else header.bands


def bands_text(bands: Bands, frame: pd.DataFrame) -> str:
    """Return what bands and bars show, for the legend's title."""
    seeds = frame[SEED].nunique()
    what = {"interval": " and 95 % interval", "deviation": " ± standard deviation", "none": ""}
    return f"mean{what[bands]} over {seeds} seeds" if seeds > 1 else "one seed"


def facet_size(facets: int) -> dict[str, Any]:
    """Return seaborn's options for the number and size of facets: at most three side by side."""
    across = facets if facets <= 3 else 2 if facets == 4 else 3
    size = {1: (3.1, 1.35), 2: (2.6, 1.2)}.get(across, (2.3, 1.05))
    return {"col_wrap": across, "height": size[0], "aspect": size[1]}


def finish(grid: Any, x: str, y: str, extra: Sequence[Line2D] = (), title: str = "") -> Figure:
    """Label a grid of facets, and put its legend, with further entries, below it."""
    grid.set_titles("{col_name}") if len(grid.axes_dict) > 1 else grid.set_titles("")
    grid.set_axis_labels(x, y)
    figure: Figure = grid.figure
    handles = [*extra]
    if grid.legend is not None:
        pairs = zip(grid.legend.legend_handles, grid.legend.get_texts(), strict=True)
        for handle, text in pairs:
            handle.set_label(text.get_text())
        handles = [*grid.legend.legend_handles, *extra]
        grid.legend.remove()
    if handles:
        wide, high = figure.get_size_inches()
        longest = max(len(str(handle.get_label())) for handle in handles)
        fit = max(1, int(wide / (0.5 + 0.075 * longest)))
        rows = -(-len(handles) // fit)
        figure.set_size_inches(wide, high + 0.2 * rows + (0.25 if title else 0.05))
        figure.legend(
            handles=handles,
            title=title,
            loc="outside lower center",
            frameon=False,
            ncols=-(-len(handles) // rows),
        )
    elif title:
        figure.supxlabel(title, fontsize="medium")
    figure.set_layout_engine("constrained")
    return figure


def reference(name: str, looks: Looks) -> dict[str, Any]:
    """Return how a horizontal line is drawn; two of equal height fill each other's gaps."""
    offset = 4 * (list(looks.palette).index(name) % 2)
    return {"color": looks.palette[name], "linestyle": (offset, (4, 4))}


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, SVG or PDF, by the suffix; the same figure gives the same bytes."""
    kind = path.suffix.removeprefix(".")
    if kind not in _METADATA:
        raise FedstageError(f"{path}: suffix = {path.suffix!r}: use .png, .svg or .pdf")
    with theme(), replacing(path) as temporary:
        figure.savefig(temporary, format=kind, dpi=200, metadata=_METADATA[kind])
