"""s(d) = 2^-(d / half_life)."""

from typing import Literal

from fedstage.settings.aggregation import StaleDiscount
from fedstage.settings.base import Rate


class HalvingDiscount(StaleDiscount):
    """Halved every `half_life` rounds."""

    name: Literal["halving"]
    half_life: Rate = 1.0


def factor(settings, delay):
    return 2 ** -(delay / settings.half_life)
