"""Which cells a claim compares."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fedstage.results.cells import as_text, selects, show_point
from fedstage.settings.claims import Claim
from fedstage.settings.scores import Axis, Cells


@dataclass(frozen=True)
class Cell:
    """A cell of an experiment's table.

    Attributes
    ----------
    axes : dict
        Its value on each axis, without the seed.
    values : dict
        What was measured with each seed; empty where nothing was.
    published : float or None
        What the paper reports.
    """

    axes: Mapping[str, Axis]
    values: Mapping[Axis, float] = field(default_factory=dict)
    published: float | None = None


Pair = tuple[Cell, Cell]


def sides(claim: Claim) -> tuple[Cells, Cells]:
    """Return the cells of which something is claimed, and those that they are compared with."""
    one = claim.greater or claim.less or claim.ratio or claim.difference or claim.value or {}
    return one, claim.than or claim.to or {}


def comparisons(claim: Claim, cells: Sequence[Cell]) -> list[Pair]:
    """Return the pairs of cells that a claim compares.

    The cells of both sides that agree on all axes which neither side names. A claim about values by
    themselves compares each cell with itself.
    """
    if claim.value is not None:
        return [(cell, cell) for cell in _selected(cells, claim.where, claim.value)]
    one, other = sides(claim)
    named = one.keys() | other.keys()
    others: dict[str, list[Cell]] = defaultdict(list)
    for cell in _selected(cells, claim.where, other):
        others[_rest(cell, named)].append(cell)
    return [
        (left, right)
        for left in _selected(cells, claim.where, one)
        for right in others[_rest(left, named)]
        if left is not right
    ]


def label_pair(claim: Claim, pair: Pair, pairs: Sequence[Pair]) -> str:
    """Write what is compared, and at which values of the axes that differ between pairs."""
    left = pair[0]
    named = [axis for axis in left.axes if any(axis in side for side in sides(claim))]
    names = [" ".join(as_text(cell.axes[axis]) for axis in named) for cell in pair]
    varied = [
        axis
        for axis in left.axes
        if axis not in named and len({as_text(cell.axes[axis]) for cell, _ in pairs}) > 1
    ]
    at = ", ".join(f"{axis} = {as_text(left.axes[axis])}" for axis in varied)
    sign = "/" if claim.ratio is not None else "−"
    compared = names[0] if claim.value is not None else f"{names[0]} {sign} {names[1]}"
    return compared + (f" at {at}" if at else "")


def _selected(cells: Iterable[Cell], where: Cells, side: Cells) -> list[Cell]:
    return [cell for cell in cells if selects(where, cell.axes) and selects(side, cell.axes)]


def _rest(cell: Cell, named: Iterable[str]) -> str:
    """Write a cell's values on all axes that are not named."""
    return show_point({axis: value for axis, value in cell.axes.items() if axis not in named})
