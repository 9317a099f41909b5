"""How surprising the measurements would be if a claim were not true, or true: p-values."""

from collections.abc import Mapping, Sequence
from math import isinf, sqrt
from statistics import fmean, stdev

from fedstage.results.intervals import central_probability
from fedstage.settings.scores import Axis

#: The error that is allowed to all verdicts of a report together.
LEVEL = 0.05


def p_within(values: Sequence[float], low: float, high: float, *, closed: bool) -> float:
    """Return the p-value of a mean between bounds against one outside, by t-tests of each bound.

    Twice the one-sided p-value of the harder bound, so that it is at most 0.05 where the 95 %
    confidence interval is between the bounds. With fewer than two values it is 1.
    """
    if len(values) < 2:
        return 1.0
    return max(_p_above(values, low, closed), _p_above([-v for v in values], -high, closed))


def p_outside(values: Sequence[float], low: float, high: float) -> float:
    """Return the p-value of a mean outside bounds against one between them, as `p_within`."""
    if len(values) < 2:
        return 1.0
    return min(
        _p_above([-value for value in values], -low, closed=False),
        _p_above(values, high, closed=False),
    )


def paired(left: Mapping[Axis, float], right: Mapping[Axis, float]) -> list[float]:
    """Return the difference left - right of each seed that both have."""
    return [value - right[seed] for seed, value in left.items() if seed in right]


def holm(p_values: Sequence[float]) -> list[float]:
    """Return adjusted p-values (Holm 1979), in the order given.

    Those that are at most 0.05 may be believed together: the probability that any of them is wrong
    is at most 5 %.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, highest = [1.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def _p_above(values: Sequence[float], bound: float, closed: bool) -> float:
    """Return twice the one-sided p-value of a mean above a bound, at most 1.

    Values that are all the same leave no doubt; on the bound they are above it if it is `closed`.
    """
    if isinf(bound):
        return 0.0 if bound < 0 else 1.0
    distance, error = fmean(values) - bound, stdev(values) / sqrt(len(values))
    if error == 0:
        return 0.0 if distance > 0 or (closed and distance == 0) else 1.0
    t = distance / error
    return min(1.0, 1.0 - central_probability(t, len(values) - 1)) if t > 0 else 1.0
