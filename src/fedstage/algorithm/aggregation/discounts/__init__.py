"""Discounts s(d) of updates that are d rounds stale (FedAsync, Xie et al. 2019, section 5.2).

A discount is a module with the function `factor(settings, delay)`, found by the name of its
settings. An update that is not discounted counts 1.
"""

from fedstage.settings.aggregation import ConstantDiscount, Discount
from fedstage.settings.base import implementation


def discount(settings: Discount, delay: int) -> float:
    """Return s(d) >= 0 of an update that is `delay` rounds stale; s(0) is 1."""
    if isinstance(settings, ConstantDiscount):
        return 1.0
    factor: float = implementation(settings).factor(settings, delay)
    return factor
