"""Venn diagrams of what is lost, retained and gained, two circles per method, drawn to scale.

Figure 6 of "Edge Bias in Federated Learning and its Solution by Buffered Knowledge Distillation".
"""

from collections.abc import Iterable, Mapping, Sequence
from math import acos, pi, sqrt
from typing import Any, Literal, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle

from fedstage.results.figures.looks import COLOURS
from fedstage.results.figures.placing import FACET, LINE, line_axis, placed
from fedstage.results.figures.style import SMALL, Facets, style
from fedstage.results.retention.table import RunRetention, mean
from fedstage.results.runs_file import SEED
from fedstage.settings.scores import Axis

_PARTS = ("lost", "gained", "retained")
_HALVINGS = 60  # of an interval: more than the digits of a float
_BEFORE, _AFTER = "right before the round", "right after it"
#: Colour and line of each circle.
_LOOKS = {_BEFORE: (to_rgb(COLOURS[0]), "-"), _AFTER: (to_rgb(COLOURS[1]), "--")}
_HEIGHT = 1.3  # of axes, in inches
_BESIDE = 0.5  # inches next to circles, for a number
_MOST_ACROSS = 4
_GAP = 0.05  # inches between circles and a number next to them
#: Inches that a part must have, otherwise its number is next to the circles.
_WIDE = {"lost": 0.45, "gained": 0.5, "retained": 0.6}

#: Values on the axes of a table.
Place = tuple[Axis, ...]


class Circles(NamedTuple):
    """Two circles on the x axis: radii, and the distance of the second centre from the first."""

    before: float
    after: float
    distance: float

    @property
    def left(self) -> float:
        """The smallest x of both circles."""
        return min(-self.before, self.distance - self.after)

    @property
    def right(self) -> float:
        """The largest x of both circles."""
        return max(self.before, self.distance + self.after)

    @property
    def regions(self) -> dict[str, tuple[float, float]]:
        """The lowest and highest x of each part on the axis, equal for an empty part."""
        inner = max(-self.before, self.distance - self.after)
        outer = min(self.before, self.distance + self.after)
        return {
            "lost": (-self.before, inner),
            "retained": (inner, max(inner, outer)),
            "gained": (outer, self.distance + self.after),
        }


def circles(lost: float, gained: float, retained: float) -> Circles:
    """Return circles of areas lost + retained and gained + retained that share `retained`."""
    before, after = (sqrt((part + retained) / pi) for part in (lost, gained))
    low, high = abs(before - after), before + after
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if shared_area(before, after, middle) > retained:
            low = middle
        else:
            high = middle
    return Circles(before, after, high)


def shared_area(first: float, second: float, distance: float) -> float:
    """Return the area shared by circles of two radii, at this distance of their centres."""
    if distance >= first + second:
        return 0.0
    if distance <= abs(first - second):
        return pi * min(first, second) ** 2
    chord = (distance**2 + first**2 - second**2) / (2 * distance)  # from the first centre
    return _segment(first, chord) + _segment(second, distance - chord)


def _segment(radius: float, height: float) -> float:
    """Return the part of a circle beyond a chord at a height above its centre."""
    cosine = min(1.0, max(-1.0, height / radius))
    return radius**2 * acos(cosine) - height * radius * sqrt(1 - cosine**2)


@style()
def draw_venn(runs: Sequence[RunRetention], rows: Sequence[str], columns: Sequence[str]) -> Figure:
    """Draw two circles for each cell of the table, all to one scale.

    Areas are numbers of samples, means over rounds and seeds.
    """
    axes, main = [*rows, *columns], line_axis(rows)
    others = [axis for axis in axes if axis != main]
    # By the other axes first, so that the ones to compare are side by side.
    cells: dict[Place, list[RunRetention]] = {}
    for run in runs:
        cells.setdefault(tuple(run.settings[axis] for axis in (*others, main)), []).append(run)
    places = _in_order(list(cells))
    counts = [mean_counts(cells[place]) for place in places]
    labels = _labels(places, [*others, main])
    drawn = Facets(labels, _HEIGHT, _handles(), across=_across(places), left=0.0)
    pairs = [circles(**count) for count in counts]
    width, height = _extent(pairs, drawn.axes_width)
    for on, count, pair in zip(drawn.grid, counts, pairs, strict=True):
        on.set(xlim=(-width / 2, width / 2), ylim=(-height / 2, height / 2), aspect="equal")
        on.set_axis_off()
        _draw(on, pair, count, width / drawn.axes_width)
    return drawn.figure


def mean_counts(runs: Iterable[RunRetention]) -> dict[str, float]:
    """Return `lost`, `gained` and `retained`, means over seeds of a run's means over rounds."""
    numbers = [run.numbers for run in runs]
    return {name: mean(run[name] for run in numbers) or 0.0 for name in _PARTS}


def _in_order(places: Sequence[Place]) -> list[Place]:
    """Return places grouped by all values but the last, groups in order of first appearance."""
    groups = list(dict.fromkeys(place[:-1] for place in places))
    return sorted(places, key=lambda place: groups.index(place[:-1]))


def _across(places: Sequence[Place]) -> int | None:
    """Return the number of circles side by side, the size of a group if small; None for any."""
    groups = {place[:-1] for place in places}
    names = {place[-1] for place in places}
    full = len(groups) > 1 and len(places) == len(groups) * len(names)
    return len(names) if full and len(names) <= _MOST_ACROSS else None


def _labels(places: Sequence[Place], axes: Sequence[str]) -> list[str]:
    """Name places by the value on the last axis and, below it, on the others that vary."""
    frame = placed(pd.DataFrame(places, columns=list(axes)), axes[-1], axes)
    pairs = zip(frame[LINE], frame[FACET], strict=True)
    return [f"{name}\n{other}".strip() for name, other in pairs]


def _extent(pairs: Iterable[Circles], inches: float) -> tuple[float, float]:
    """Return the width and height of axes that hold the largest circles, and numbers next to them.

    The axes are `inches` wide.
    """
    every = list(pairs)
    widest = max(pair.right - pair.left for pair in every) or 1.0
    highest = 2 * max(max(pair.before, pair.after) for pair in every) or 1.0
    below = 0.3  # inches of a number below circles
    an_inch = max(widest / (inches - 2 * _BESIDE), highest / (_HEIGHT - below))
    return inches * an_inch, _HEIGHT * an_inch


def _draw(axes: Axes, pair: Circles, counts: Mapping[str, float], inch: float) -> None:
    """Draw circles around the origin with their counts; `inch` is one inch in units of the axes."""
    middle = (pair.left + pair.right) / 2
    radii = {_BEFORE: (-middle, pair.before), _AFTER: (pair.distance - middle, pair.after)}
    for name, (x, radius) in radii.items():
        colour, line = _LOOKS[name]
        look = {"facecolor": (*colour, 0.25), "edgecolor": colour, "linestyle": line}
        axes.add_patch(Circle((x, 0), radius, linewidth=1.0, **look))
    for part, (low, high) in pair.regions.items():
        at = _Text((low + high) / 2 - middle, 0, "center", "center")
        if high - low < _WIDE[part] * inch:
            at = _beside(part, pair, _GAP * inch)
        text = f"{part}\n{counts[part]:.1f}"
        axes.text(at.x, at.y, text, ha=at.ha, va=at.va, fontsize=SMALL, linespacing=1.2)


class _Text(NamedTuple):
    """The place of a text, and its alignment there."""

    x: float
    y: float
    ha: Literal["left", "center", "right"]
    va: Literal["center", "top"]


def _beside(part: str, pair: Circles, gap: float) -> _Text:
    """Return the place, next to both circles, of a number that does not fit into one."""
    half = (pair.right - pair.left) / 2
    if part == "lost":
        return _Text(-half - gap, 0, "right", "center")
    if part == "gained":
        return _Text(half + gap, 0, "left", "center")
    return _Text(0, -max(pair.before, pair.after) - gap, "center", "top")


def _handles() -> list[Line2D]:
    look: dict[str, Any] = {"marker": "o", "linestyle": "", "markersize": 7}
    return [
        Line2D([], [], label=name, markerfacecolor=(*colour, 0.25), markeredgecolor=colour, **look)
        for name, (colour, _) in _LOOKS.items()
    ]


def describe_venn(runs: Sequence[RunRetention]) -> str:
    """Return the caption's text on the circles of `draw_venn`."""
    seeds = len({run.settings[SEED] for run in runs})
    over = "rounds" if seeds == 1 else f"rounds and {seeds} seeds"
    return (
        "Training samples of the previous participants that the main model is right about: before "
        "the round (full lines) and after it (dashed). Areas are to scale; numbers are means over "
        f"{over}."
    )
