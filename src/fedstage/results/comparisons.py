"""The cells of a table that a claim compares."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fedstage.settings.cells import as_text, selects, show_point
from fedstage.settings.scores import Axis, Cells, Claim


@dataclass(frozen=True)
class Cell:
    """A cell of an experiment's table.

    It has a value on each axis but the seed, the measured number of each seed, and the paper's
    number, with its deviation and number of seeds.
    """

    axes: Mapping[str, Axis]
    values: Mapping[Axis, float] = field(default_factory=dict)
    published: float | None = None
    published_std: float | None = None
    published_seeds: int | None = None


Pair = tuple[Cell, Cell]
#: Turns a point of axes into its labels.
Show = Callable[[Mapping[str, Axis]], Mapping[str, Axis]]


def sides(claim: Claim) -> tuple[Cells, Cells]:
    """Return the cells that a claim is about, and the cells that these are compared with."""
    subject = claim.greater or claim.less or claim.ratio or claim.difference or claim.value or {}
    return subject, claim.than or claim.to or {}


def comparisons(claim: Claim, cells: Sequence[Cell]) -> list[Pair]:
    """Return the pairs of cells that a claim compares.

    A pair has one cell of each side; they agree on all axes that neither side names. A claim about
    single values pairs each cell with itself.
    """
    if claim.value is not None:
        return [(cell, cell) for cell in _selected(cells, claim.where, claim.value)]
    subject, reference = sides(claim)
    named = subject.keys() | reference.keys()
    references: dict[str, list[Cell]] = defaultdict(list)
    for cell in _selected(cells, claim.where, reference):
        references[rest_of(cell, named)].append(cell)
    return [
        (left, right)
        for left in _selected(cells, claim.where, subject)
        for right in references[rest_of(left, named)]
        if left is not right
    ]


def label_pair(claim: Claim, pair: Pair, pairs: Sequence[Pair], show: Show = dict) -> str:
    """Write a comparison, with its values on the axes that vary between pairs."""
    left = pair[0]
    named = [axis for axis in left.axes if any(axis in side for side in sides(claim))]
    points = [show({axis: cell.axes[axis] for axis in named}) for cell in pair]
    names = [" ".join(map(as_text, point.values())) for point in points]
    varied = [
        axis
        for axis in left.axes
        if axis not in named and len({as_text(cell.axes[axis]) for cell, _ in pairs}) > 1
    ]
    at = show_point(show({axis: left.axes[axis] for axis in varied}))
    sign = "/" if claim.ratio is not None else "−"
    compared = names[0] if claim.value is not None else f"{names[0]} {sign} {names[1]}"
    return compared + (f" at {at}" if at else "")


def _selected(cells: Iterable[Cell], where: Cells, side: Cells) -> list[Cell]:
    return [cell for cell in cells if selects(where, cell.axes) and selects(side, cell.axes)]


def rest_of(cell: Cell, named: Iterable[str]) -> str:
    """Write a cell's values on all axes but the named ones."""
    return show_point({axis: value for axis, value in cell.axes.items() if axis not in named})
