"""The scale of an axis of values that were tried, which has a tick at each of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import inf, log10

import pandas as pd

from fedstage.results.figures.style import EM, SMALL
from fedstage.results.tables.labels import show_value

MARGIN = 0.4  # steps before the first value, and after the last one
_HIGH = 1.3  # heights of a turned label from one to the next
_WIDEST = 10  # factor between the least and the largest positive value of a linear scale


@dataclass(frozen=True)
class Scale:
    """The place of each value on an axis, in its mean steps; the first one is at 0.

    If the scale is `broken`, the first value is a zero, which a logarithmic scale does not have.
    """

    places: Mapping[str, float]
    broken: bool = False

    @property
    def nearest(self) -> float:
        """The least distance between two values, in steps."""
        places = self.places.values()
        return min((after - before for before, after in pairwise(places)), default=1.0)

    def labels(self, wide: float) -> tuple[list[str], bool]:
        """Return the labels of the ticks on an axis of some inches, and whether they are turned.

        Where even turned labels would overlap, some are empty.
        """
        step = wide / (max(self.places.values()) + 2 * MARGIN)
        room = (max(map(len, self.places)) + 1) * SMALL * EM / step
        if self.nearest >= room:
            return list(self.places), False
        last, labels = -inf, []
        for name, place in self.places.items():
            fits = place - last >= _HIGH * SMALL / 72 / step
            labels.append(name if fits else "")
            last = place if fits else last
        return labels, True


def scale_of(values: pd.Series) -> Scale:
    """Return a scale with numbers by size, or other values side by side, as they first appear.

    It is logarithmic for positive numbers that span a factor of ten or more, also after a zero.
    """
    every = list(values.unique())
    is_number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if not is_number or values.isna().any():
        return Scale({show_value(value): float(place) for place, value in enumerate(every)})
    every.sort()
    positive = [value for value in every if value > 0]
    logarithmic = every[0] >= 0 and len(positive) > 1 and positive[-1] >= _WIDEST * positive[0]
    broken = logarithmic and every[0] == 0
    at = [log10(value) for value in positive] if logarithmic else [float(value) for value in every]
    step = (at[-1] - at[0]) / max(1, len(at) - 1) or 1.0
    places = [*([0.0] if broken else []), *(broken + (place - at[0]) / step for place in at)]
    return Scale(dict(zip(map(show_value, every), places, strict=True)), broken)
