"""Discounts s(d): what an update counts that is d rounds stale (FedAsync, section 5.2).

A discount is a module with the function `factor`, found by the name of its settings. An update that
is not discounted counts 1.
"""

from typing import Any, Protocol, cast

from fedstage.settings.aggregation import ConstantDiscount, Discount
from fedstage.settings.base import implementation


class DiscountModule(Protocol):
    """The function of a discount's module."""

    def factor(self, settings: Any, delay: int) -> float:
        """Return s(d) of an update that is `delay` rounds stale, at least 0; s(0) is 1."""


def discount(settings: Discount, delay: int) -> float:
    """Return s(d)."""
    if isinstance(settings, ConstantDiscount):
        return 1.0
    return cast(DiscountModule, implementation(settings)).factor(settings, delay)
