"""The looks of lines, which differ in colour, marker and dashes, so that greyscale is enough."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import combinations, product
from types import MappingProxyType
from typing import Any, TypeVar

from matplotlib.lines import Line2D

from fedstage.experiments.runs_file import ExperimentRuns
from fedstage.results.figures.placing import line_axis
from fedstage.results.tables.labels import METHOD, show_value
from fedstage.settings.experiments import Colour, Marker, Style

_T = TypeVar("_T")

#: Okabe and Ito's colours for readers with any colour vision, but Tol's wine instead of yellow,
#: which is invisible on white.
PALETTE: dict[Colour, str] = {
    "blue": "#0072B2",
    "vermilion": "#D55E00",
    "green": "#009E73",
    "pink": "#CC79A7",
    "black": "#000000",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "wine": "#882255",
}
COLOURS = tuple(PALETTE.values())
#: Colours that are close to another one.
_SHADES: dict[Colour, Colour] = {"sky": "blue", "orange": "vermilion", "pink": "wine"}
#: Only for methods that ask for it, since it is the colour of lines in the background.
_GREY: dict[Colour, str] = {"grey": "#767676"}
#: Markers of matplotlib.
_MARKERS: dict[Marker, str] = {
    "circle": "o", "square": "s", "triangle_up": "^", "diamond": "D", "triangle_down": "v",
    "plus": "P", "triangle_left": "<", "triangle_right": ">",
}  # fmt: skip
MARKERS = tuple(_MARKERS.values())
#: Points of ink and of gaps, through which another line with the same course is visible.
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 1.5), (1.2, 1.2), (5, 1.2, 1.2, 1.2), (2.5, 2.5))

LINE_WIDTH, MARKER_SIZE = 1.1, 4.0  # points
#: Factors for markers with less area than a disc.
_LARGER = {"^": 1.15, "v": 1.15, "<": 1.15, ">": 1.15, "P": 1.3}
#: The style of the mean curves of lines that another panel is about.
BEHIND: dict[str, Any] = {"color": "0.8", "linewidth": 0.8, "zorder": 1}
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


NONE: Mapping[str, Look] = MappingProxyType({})
#: What stands for points of any line in a legend.
GREY = Look("0.35", "o", ())


def looks_of(names: Iterable[str], given: Mapping[str, Look] = NONE) -> dict[str, Look]:
    """Return the look of each name: the given one, or else one determined by the name."""
    own = _distinct(dict.fromkeys(names, Style()))
    return {name: given.get(name, look) for name, look in own.items()}


def looks_of_runs(experiment: ExperimentRuns) -> dict[str, Look]:
    """Return the looks of an experiment's lines, the same in all its figures, by their labels.

    A method's colour and marker are the given ones, or else determined by its name.
    """
    axis = line_axis(experiment.rows)
    values = dict.fromkeys(run.settings[axis] for run in experiment.runs)
    if axis != METHOD:
        return looks_of([show_value(value) for value in values])
    looks = _distinct({str(name): experiment.styles.get(str(name), Style()) for name in values})
    return {experiment.labels.get(name, name): look for name, look in looks.items()}


def _distinct(styles: Mapping[str, Style]) -> dict[str, Look]:
    """Return a look for each name, in their order.

    Parts of a look that are not given start at the digest of the name, and the rarest so far are
    taken. So equal colours have different markers, equal markers have different dashes, and a
    second shade of a colour comes last. Given parts count from the start.
    """
    seen: Counter[Any] = Counter(
        part
        for style in styles.values()
        for part in (style.colour, style.marker, *_hues(style.colour))
    )
    looks: dict[str, Look] = {}
    for name, style in styles.items():
        digest = int.from_bytes(sha256(name.encode()).digest()[:8])
        every = product(
            [style.colour] if style.colour else _turned(tuple(PALETTE), digest),
            [style.marker] if style.marker else _turned(tuple(_MARKERS), digest >> 8),
            _turned(DASHES, digest >> 16),
        )
        colour, marker, dashes = min(every, key=partial(_frequency, seen))
        given = Counter([style.colour, style.marker, *_hues(style.colour)])
        parts = (colour, marker, dashes)
        seen.update(Counter([*parts, *_hues(colour), *combinations(parts, 2)]))
        seen.subtract(given)
        looks[name] = Look((PALETTE | _GREY)[colour], _MARKERS[marker], dashes)
    return looks


def _frequency(seen: Mapping[Any, int], parts: tuple[Any, Any, Any]) -> tuple[int, ...]:
    every = (*combinations(parts, 2), *_hues(parts[0]), *parts)
    return tuple(seen.get(part, 0) for part in every)


def _hues(colour: Colour | None) -> list[tuple[str, Colour]]:
    """Return the keys that all shades of a colour share, none without a colour."""
    return [("hue", _SHADES.get(colour, colour))] if colour else []


def _turned(parts: Sequence[_T], start: int) -> tuple[_T, ...]:
    start %= len(parts)
    return (*parts[start:], *parts[:start])


def line_handle(name: str, look: Look) -> Line2D:
    """Return the entry of a curve or reference in a legend."""
    return Line2D([], [], label=name, **(look.point | look.line))


def point_handle(name: str, look: Look) -> Line2D:
    """Return the entry of single points in a legend."""
    return Line2D([], [], label=name, **look.point)
