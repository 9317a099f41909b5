"""s(d) = 1 up to d = b, and 1 / (a (d - b) + 1) beyond (FedAsync, section 5.2)."""

from fedstage.settings.aggregation import HingeDiscount


def factor(settings: HingeDiscount, delay: int) -> float:
    """Return s(d)."""
    return 1.0 if delay <= settings.b else 1 / (settings.a * (delay - settings.b) + 1)
