"""References: runs that are evaluated once, as named horizontal lines in a figure of curves.

Examples are local training of each client, training on all data, closed forms and one-shot methods.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from fedstage.results.figures.looks import Look
from fedstage.results.figures.strips import Strip
from fedstage.results.figures.style import EM, SMALL

#: The most references that have their names next to them; more are in the legend.
MOST_NAMED = 5
_THIN: dict[str, Any] = {"linewidth": 0.8, "zorder": 1.5}
_LINE = 1.15 / 72  # inches of a line, for each point of its font
_BOX: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.4}
_MARGIN = 0.1  # of the height, for names above all lines
_SAMPLES = 9  # of a curve below a name


#: Points of a line, in the units of the axes.
Line = np.ndarray[tuple[int, int], np.dtype[np.float64]]


class Reference(NamedTuple):
    """A horizontal line: its name and height."""

    name: str
    height: float


def draw_references(
    axes: Axes, strip: Strip, references: Iterable[Reference], looks: Mapping[str, Look]
) -> None:
    """Draw a line from the first round to each reference's place in the strip."""
    for name, height in references:
        axes.plot([strip.first, strip.places[name]], [height] * 2, **looks[name].line | _THIN)


def name_references(
    axes: Axes,
    strip: Strip,
    references: Sequence[Reference],
    looks: Mapping[str, Look],
    size: tuple[float, float],
) -> None:
    """Write the name of each reference above or below its line, where there is the most room.

    All lines must have been drawn; `size` is the size of the axes in inches.
    """
    axes.margins(y=_MARGIN)
    low, high = axes.get_ylim()
    up, across = (high - low) / size[1], np.ptp(axes.get_xlim()) / size[0]  # units per inch
    step = 0.6 * SMALL * _LINE * up
    lines = [np.asarray(line.get_xydata()) for line in axes.lines]
    taken: list[Line] = []
    for name, height in references:
        wide = len(name) * SMALL * EM * across
        starts = [strip.last - wide, strip.first]
        places = [(x, y) for x, y in product(starts, (height + step, height - step))]
        inside = [place for place in places if low + step <= place[1] <= high - step]
        left, middle = max(inside or places, key=partial(_room, wide, [*lines, *taken], 2 * step))
        taken.append(np.array([(left, middle), (left + wide, middle)]))
        options: dict[str, Any] = {
            "va": "center",
            "fontsize": SMALL,
            "color": looks[name].colour,
            "bbox": _BOX,
        }
        axes.text(left, middle, name, **options)


def _room(wide: float, lines: Sequence[Line], enough: float, place: tuple[float, float]) -> float:
    """Return the vertical distance from a name to the nearest line, at most `enough`."""
    across = np.linspace(place[0], place[0] + wide, _SAMPLES)
    near = [
        np.interp(across, x, y, np.inf, np.inf) - place[1] for x, y in (line.T for line in lines)
    ]
    return min(enough, *(float(np.abs(one).min()) for one in near))
