"""Panels of a figure of curves: small multiples if one panel would have too many curves."""

from collections.abc import Sequence
from typing import NamedTuple

#: Curves that share one panel.
TOGETHER = 5
#: The most panels of one curve each, and the most points that are distinguished in one panel.
MOST_ALONE = 12
ALONE, BESIDE = 2.1, 1.55  # inches of height of a single panel, and of one of several
_PAGE_HEIGHT = 7.5  # maximum inches that panels take


class Panel(NamedTuple):
    """A facet, the curves that are in colour there, and the title; others are in grey."""

    facet: str
    names: Sequence[str]
    title: str


def panels_of(facets: Sequence[str], names: Sequence[str]) -> list[Panel]:
    """Return a panel for each facet, or several if there are more than five curves.

    With a single facet, each panel has one curve and its name if there are few enough curves.
    Otherwise panels have about the same number of curves, up to five.
    """
    if len(names) <= TOGETHER:
        return [Panel(facet, names, facet) for facet in facets]
    if len(facets) == 1 and len(names) <= MOST_ALONE:
        return [Panel(facets[0], [name], name) for name in names]
    groups = -(-len(names) // TOGETHER)
    size = -(-len(names) // groups)
    parts = [names[start : start + size] for start in range(0, len(names), size)]
    return [
        Panel(facet, part, facet or f"{part[0]} to {part[-1]}")
        for facet in facets
        for part in parts
    ]


def panel_height(panels: int, across: int = 3) -> float:
    """Return the height of each of some panels in inches, so that they fit a page."""
    return ALONE if panels == 1 else min(BESIDE, _PAGE_HEIGHT / -(-panels // across) - 0.4)
