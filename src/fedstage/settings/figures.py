"""How figures look: the colours and markers of methods, and what bands show."""

from typing import Literal

from fedstage.settings.base import Line, Settings

#: What bands and bars show if there are several seeds.
Bands = Literal["interval", "deviation", "none"]
#: Names of colours that readers with any colour vision can tell apart.
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
    """How results show a method; omitted settings follow from its name."""

    label: Line | None = None
    """Name of the method in tables and figures."""
    colour: Colour | None = None
    """Colour of the method in figures."""
    marker: Marker | None = None
    """Marker of the method's points in figures."""


class Figures(Settings):
    """The figures of an experiment."""

    bands: Bands | None = None
    """What bands and bars show from three seeds on: the 95 % confidence `interval` of the mean (the
    default for five seeds or more), one standard `deviation` (the default for fewer), or nothing.
    """
