"""s(d) = (1 + d)^-a (FedAsync, section 5.2; FedBuff with a = 1 / 2)."""

from fedstage.settings.aggregation import PolynomialDiscount


def factor(settings: PolynomialDiscount, delay: int) -> float:
    """Return s(d)."""
    return float((1 + delay) ** -settings.exponent)
