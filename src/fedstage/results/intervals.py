"""Confidence intervals of means, by Student's t (Gosset 1908), with standard library only."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import atan, cos, floor, inf, isnan, nan, pi, sin, sqrt
from statistics import fmean, stdev

LEVEL = 0.95
_HALVINGS = 200  # more than a float has bits: bisection ends at its last digit


@dataclass(frozen=True)
class Interval:
    """A mean of n values and its confidence interval, nan for fewer than two values."""

    mean: float
    low: float
    high: float
    n: int


def confidence_interval(values: Sequence[float], level: float = LEVEL) -> Interval:
    """Return mean ± t s / sqrt(n), with deviation s (n - 1) and t of n - 1 degrees of freedom.

    For differences between pairs this is the interval of the paired t-test.
    """
    n = len(values)
    if n < 2:
        return Interval(values[0] if n else nan, nan, nan, n)
    mean = fmean(values)
    half = student_t(level, n - 1) * stdev(values) / sqrt(n)
    return Interval(mean, mean - half, mean + half, n)


def welch_interval(
    sample: tuple[float, float, int], other: tuple[float, float, int], level: float = LEVEL
) -> tuple[float, float]:
    """Return the confidence interval of the difference of two means (Welch 1947).

    Each is a mean, its deviation (n - 1) and n, of independent samples whose variances may differ.
    Satterthwaite's degrees of freedom are rounded down, so that the interval is rather too wide;
    nan where a deviation is not known or of a single value.
    """
    (mean, std, n), (reference, its_std, its_n) = sample, other
    if min(n, its_n) < 2 or isnan(std) or isnan(its_std):
        return nan, nan
    own, its = std**2 / n, its_std**2 / its_n
    if own + its == 0:
        return mean - reference, mean - reference
    degrees = (own + its) ** 2 / (own**2 / (n - 1) + its**2 / (its_n - 1))
    half = student_t(level, max(1, floor(degrees + 1e-9))) * sqrt(own + its)
    return mean - reference - half, mean - reference + half


def student_t(level: float, degrees: int) -> float:
    """Return the t with P(|T| <= t) = level, for T of Student's distribution."""
    low, high = 0.0, 1.0
    while central_probability(high, degrees) < level and high < inf:
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if central_probability(middle, degrees) < level:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def central_probability(t: float, degrees: int) -> float:
    """Return P(|T| <= t) for whole degrees of freedom, as a finite sum.

    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    """
    theta = atan(t / sqrt(degrees))
    odd = degrees % 2
    term = cos(theta) if odd else 1.0
    total = 0.0
    for step in range(degrees // 2):
        total += term
        k = 2 * step + 1 + odd
        term *= cos(theta) ** 2 * k / (k + 1)
    if odd:
        return 2 / pi * (theta + sin(theta) * total)
    return sin(theta) * total
