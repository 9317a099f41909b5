"""How figures look: the colours and markers of methods, and what bands show."""

from typing import Literal

from fedstage.settings.base import Line, Settings

#: What bands and bars show of several seeds.
Bands = Literal["interval", "deviation", "none"]
#: Names of colours that readers of all kinds of vision tell apart.
Colour = Literal["blue", "vermilion", "green", "pink", "black", "orange", "sky", "wine", "grey"]
Marker = Literal[
    "circle",
    "square",
    "triangle_up",
    "diamond",
    "triangle_down",
    "plus",
    "triangle_left",
    "triangle_right",
]


class Style(Settings):
    """How results show a method; what is not given follows from its name."""

    label: Line | None = None
    """Its name in tables and figures."""
    colour: Colour | None = None
    """Its colour."""
    marker: Marker | None = None
    """The marker of its points."""


class Figures(Settings):
    """The figures of an experiment."""

    bands: Bands | None = None
    """What bands and bars show from three seeds on: the 95 % `interval` of the mean (by default
    from five seeds on), one standard `deviation` (by default of fewer), or nothing.
    """
