"""How lines are told apart: by colour, marker and dashes together, so that greyscale is enough."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

from matplotlib.lines import Line2D

#: Okabe and Ito's colours for readers of all kinds of vision; instead of yellow, which is lost on
#: white, Tol's wine.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9", "#882255")
#: One more than colours, and fewer dashes, so that no two of many lines look the same.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
#: Points of ink and of gaps; through these another line shows that takes the same course.
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 1.5), (1.2, 1.2), (5, 1.2, 1.2, 1.2), (2.5, 2.5))

LINE_WIDTH, MARKER_SIZE = 1.1, 4.0  # points
#: Of markers with less area than a disc.
_LARGER = {"^": 1.15, "v": 1.15, "<": 1.15, ">": 1.15, "P": 1.3, "X": 1.3}
EDGE = {"markeredgecolor": "white", "markeredgewidth": 0.3}


@dataclass(frozen=True)
class Look:
    """The colour, marker and dashes of a line; points have no dashes."""

    colour: str
    marker: str
    dashes: tuple[float, ...]

    @property
    def line(self) -> dict[str, Any]:
        """The options of matplotlib for a line without markers."""
        style = (0, self.dashes) if self.dashes else "-"
        return {"color": self.colour, "linestyle": style, "linewidth": LINE_WIDTH}

    @property
    def point(self) -> dict[str, Any]:
        """The options of matplotlib for points without a line."""
        return {
            "color": self.colour,
            "marker": self.marker,
            "linestyle": "",
            "markersize": MARKER_SIZE * _LARGER.get(self.marker, 1.0),
            **EDGE,
        }

    @property
    def hollow(self) -> dict[str, Any]:
        """The options of matplotlib for points that are open: what a paper reports."""
        open_ = {"markerfacecolor": "white", "markeredgecolor": self.colour, "markeredgewidth": 0.9}
        return self.point | open_


def looks_of(names: Sequence[str]) -> dict[str, Look]:
    """Return the look of each name, by its position.

    All figures of an experiment name its methods in the order of its runs, so that a method looks
    the same in each.
    """
    every = zip(cycle(COLOURS), cycle(MARKERS), cycle(DASHES), strict=False)
    looks = (Look(*parts) for parts in islice(every, len(names)))
    return dict(zip(names, looks, strict=True))


def line_handle(name: str, look: Look) -> Line2D:
    """Return the entry of a curve in a legend."""
    return Line2D([], [], label=name, **(look.point | look.line))


def point_handle(name: str, look: Look) -> Line2D:
    """Return the entry of single points in a legend."""
    return Line2D([], [], label=name, **look.point)
