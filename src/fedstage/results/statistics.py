"""Confidence intervals and t-tests of means over seeds, and Holm's correction."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import isinf, isnan, nan, sqrt
from statistics import fmean, stdev
from typing import NamedTuple

from scipy import stats

from fedstage.settings.scores import Axis

CONFIDENCE = 0.95
#: The error that is allowed to all verdicts of a family together.
LEVEL = 0.05
_FEWEST_EQUAL = 5  # differences whose interval may have no width
_ROUNDING = 1e-9


class Interval(NamedTuple):
    """A mean of n values and its confidence interval, nan for fewer than two values."""

    mean: float
    low: float
    high: float
    n: int


def confidence_interval(values: Sequence[float]) -> Interval:
    """Return mean ± t s / sqrt(n), with deviation s (n - 1) and t of n - 1 degrees of freedom.

    For differences between pairs this is the interval of the paired t-test.
    """
    n = len(values)
    if n < 2:
        return Interval(values[0] if n else nan, nan, nan, n)
    return _around(fmean(values), stdev(values) / sqrt(n), n - 1, n)


def interval_of_differences(differences: Sequence[float]) -> Interval:
    """Return `confidence_interval` of paired differences, without ends if these are misleading.

    Differences of a few seeds may be equal by chance, above all between scores on few test samples.
    Fewer than five equal differences do not justify an interval of zero width.
    """
    found = confidence_interval(differences)
    return found._replace(low=nan, high=nan) if few_equal(differences) else found


def few_equal(differences: Sequence[float]) -> bool:
    """Whether differences are fewer than five and all the same, up to rounding of floats."""
    few = 0 < len(differences) < _FEWEST_EQUAL
    return few and max(differences) - min(differences) < _ROUNDING


def welch_interval(
    sample: tuple[float, float, int], other: tuple[float, float, int]
) -> tuple[float, float]:
    """Return the confidence interval of the difference of two means (Welch 1947).

    Each is a mean, its deviation (n - 1) and n, from independent samples whose variances may
    differ; nan if a deviation is unknown or based on a single value.
    """
    (mean, std, n), (reference, its_std, its_n) = sample, other
    if min(n, its_n) < 2 or isnan(std) or isnan(its_std):
        return nan, nan
    parts = (std**2 / n, n - 1), (its_std**2 / its_n, its_n - 1)
    variance = sum(part for part, _ in parts)
    bottom = sum(part**2 / degrees for part, degrees in parts)  # Satterthwaite's degrees
    found = _around(mean - reference, sqrt(variance), variance**2 / bottom if bottom else 1.0, n)
    return found.low, found.high


def _around(mean: float, error: float, degrees: float, n: int) -> Interval:
    half = float(stats.t.isf((1 - CONFIDENCE) / 2, degrees)) * error
    return Interval(mean, mean - half, mean + half, n)


def p_within(values: Sequence[float], low: float, high: float, *, closed: bool) -> float:
    """Return the p-value of a mean between bounds against one outside, by t-tests of each bound.

    It is twice the larger one-sided p-value of the two bounds, so it is at most 0.05 if the 95 %
    confidence interval is between the bounds. With fewer than two values it is 1.
    """
    above = _p_above(values, low, closed)
    return min(1.0, 2 * max(above, _p_above([-v for v in values], -high, closed)))


def p_outside(values: Sequence[float], low: float, high: float) -> float:
    """Return the p-value of a mean outside bounds against one between them; see `p_within`."""
    below = _p_above([-value for value in values], -low, closed=False)
    return min(1.0, 2 * min(below, _p_above(values, high, closed=False)))


def p_of_differences(differences: Sequence[float]) -> float:
    """Return the two-sided p-value of the paired t-test, 1 for `few_equal` differences.

    These have no deviation to test by, and may be the same by chance.
    """
    return 1.0 if few_equal(differences) else p_outside(differences, 0.0, 0.0)


def _p_above(values: Sequence[float], bound: float, closed: bool) -> float:
    """Return the one-sided p-value of a mean above a bound; 1 for fewer than two values.

    Equal values leave no doubt; values on the bound count as above it if it is `closed`.
    """
    if len(values) < 2:
        return 1.0
    if isinf(bound):
        return 0.0 if bound < 0 else 1.0
    if min(values) == max(values):
        return 0.0 if values[0] > bound or (closed and values[0] == bound) else 1.0
    return float(stats.ttest_1samp(values, bound, alternative="greater").pvalue)


def paired(left: Mapping[Axis, float], right: Mapping[Axis, float]) -> list[float]:
    """Return the difference left - right of each seed that both have."""
    return [value - right[seed] for seed, value in left.items() if seed in right]


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm's method (1979), in the order given.

    The smallest of m is multiplied by m, the next by m - 1, and so on; none is below one before it.
    """
    # The same as multipletests of statsmodels, whose import takes a second for each table.
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    steps = ((len(order) - rank) * p_values[place] for rank, place in enumerate(order))
    adjusted = dict(zip(order, accumulate(steps, max), strict=True))
    return [min(1.0, adjusted[place]) for place in range(len(p_values))]
