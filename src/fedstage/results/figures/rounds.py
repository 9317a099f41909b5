"""An axis of rounds: its ticks, and strips of scores that have no round."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from matplotlib.axes import Axes

from fedstage.results.figures.looks import Look
from fedstage.results.figures.placing import PLACE
from fedstage.results.figures.seeds import Spread, draw_dot
from fedstage.results.figures.style import RULE

_NEAR = 0.5  # of a step: a tick nearer than this to the first or last round is left out


def round_ticks(first: int, last: int, most: int = 6) -> list[int]:
    """Return rounds to label: the first, the last, and multiples of 1, 2, 5 or 10 in between.

    Parameters
    ----------
    first, last : int
        The first and the last round.
    most : int
        The maximum number of ticks, at least 2.

    Examples
    --------
    >>> round_ticks(1, 100)
    [1, 20, 40, 60, 80, 100]
    >>> round_ticks(1, 8)
    [1, 2, 4, 6, 8]
    """
    if first == last:
        return [first]
    return next(
        ticks for step in round_numbers() if len(ticks := _ticks(first, last, step)) <= most
    )


def _ticks(first: int, last: int, step: int) -> list[int]:
    between = range(first + 1, last)
    near = _NEAR * step
    inner = [at for at in between if at % step == 0 and min(at - first, last - at) >= near]
    return [first, *inner, last]


def round_numbers() -> Iterator[int]:
    """Yield 1, 2, 5, 10, 20, 50, 100 and so on."""
    for power in count():
        yield from (factor * 10**power for factor in (1, 2, 5))


# --- strips ---------------------------------------------------------------------------------------
#
# A strip next to curves, in which every line has a place for a point with its interval.
#
# The strip shows the bars of runs that are evaluated once, and keeps curves that end at the same
# height from hiding one another.

_LEAST, _SHARE = 0.5, 0.45  # width of the strip: in inches, and its largest share of the axes


@dataclass(frozen=True)
class Strip:
    """A strip to the right of curves over rounds, in units of the x axis.

    Parameters
    ----------
    first, last : float
        The first and last round.
    rule : float
        Where the strip begins.
    places : dict of float
        The place of each line, by its name.
    end : float
        Where the axes end.
    """

    first: float
    last: float
    rule: float
    places: Mapping[str, float]
    end: float

    @property
    def middle(self) -> float:
        """The middle of the strip."""
        return (self.rule + self.end) / 2


def strip_beside(
    first: float, last: float, names: Sequence[str], width: float, most: int = 0
) -> Strip:
    """Return the strip next to rounds from `first` to `last` on axes some inches wide.

    It has room for `most` names if panels have different numbers of names.
    """
    inches = min(max(_LEAST, PLACE * (max(most, len(names)) + 1)), _SHARE * width)
    span = max(last - first, 1)
    a_inch = 1.06 * span / (width - inches)  # rounds per inch, with a margin on both sides
    rule = last + 0.03 * span
    step = inches * a_inch / (len(names) + 1)
    places = {name: rule + step * (place + 1) for place, name in enumerate(names)}
    return Strip(first, last, rule, places, rule + inches * a_inch)


def draw_strip(
    axes: Axes, strip: Strip, spreads: Mapping[str, Spread], looks: Mapping[str, Look]
) -> None:
    """Draw a point for each line, and set the scale of the x axis."""
    axes.axvline(strip.rule, **RULE)
    for name, spread in spreads.items():
        draw_dot(axes, strip.places[name], spread, looks[name])
    span = max(strip.last - strip.first, 1)
    axes.set_xlim(strip.first - 0.03 * span, strip.end)
    rounds = round_ticks(round(strip.first), round(strip.last))
    axes.set_xticks([*rounds, strip.middle], [*map(str, rounds), "end"])
    axes.xaxis.get_major_ticks()[-1].tick1line.set_visible(False)
    axes.grid(visible=False, axis="x")
