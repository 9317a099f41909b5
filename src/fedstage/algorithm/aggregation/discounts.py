"""Discounts s(d) of updates that are d rounds stale (FedAsync, Xie et al. 2019, section 5.2).

    s(d) = (1 + d)^-a        with a = 1 / 2 in FedBuff

A discount is a module with the function `factor(settings, delay)`, found by its settings. An update
that is not discounted counts 1.
"""

from fedstage.settings.aggregation import ConstantDiscount, Discount, PolynomialDiscount
from fedstage.settings.base import implementation


def discount(settings: Discount, delay: int) -> float:
    """Return s(d) >= 0 of an update that is `delay` rounds stale; s(0) is 1."""
    if isinstance(settings, ConstantDiscount):
        return 1.0
    found: float = implementation(settings).factor(settings, delay)
    return found


def factor(settings: PolynomialDiscount, delay: int) -> float:
    """Return (1 + d)^-a."""
    return float((1 + delay) ** -settings.exponent)
