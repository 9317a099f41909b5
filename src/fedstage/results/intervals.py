"""Confidence intervals: of means over seeds, of two papers' means, over seeds and test images."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan, nan, sqrt
from statistics import fmean, stdev

from scipy import stats

LEVEL = 0.95
_FEWEST_EQUAL = 5  # differences whose interval may have no width
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Interval:
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
    return replace(found, low=nan, high=nan) if few_equal(differences) else found


def few_equal(differences: Sequence[float]) -> bool:
    """Whether differences are fewer than five and all the same, up to rounding of floats."""
    few = 0 < len(differences) < _FEWEST_EQUAL
    return few and max(differences) - min(differences) < _ROUNDING


def welch_interval(
    sample: tuple[float, float, int], other: tuple[float, float, int], level: float = LEVEL
) -> tuple[float, float]:
    """Return the confidence interval of the difference of two means (Welch 1947).

    Each is a mean, its deviation (n - 1) and n, from independent samples whose variances may
    differ; nan if a deviation is unknown or based on a single value.
    """
    (mean, std, n), (reference, its_std, its_n) = sample, other
    if min(n, its_n) < 2 or isnan(std) or isnan(its_std):
        return nan, nan
    parts = [(std**2 / n, n - 1), (its_std**2 / its_n, its_n - 1)]
    found = _around(
        mean - reference, sqrt(sum(v for v, _ in parts)), satterthwaite(parts), n, level
    )
    return found.low, found.high


def with_images(values: Sequence[float], variance: float, images: int) -> Interval:
    """Return the interval of a mean over seeds and test images together.

    The seeds share one test set, so its variance does not shrink with their number. The squared
    standard error is s^2 / n + variance, with s the deviation over n seeds (which contains the
    interaction of seeds and images), and Satterthwaite's degrees of freedom.

    Parameters
    ----------
    variance : float
        The variance of the mean by the draw of the test images.
    images : int
        The number of test images.
    """
    n = len(values)
    if n < 2:
        return Interval(values[0] if n else nan, nan, nan, n)
    parts = [(stdev(values) ** 2 / n, n - 1), (variance, images - 1)]
    error = sqrt(sum(variance for variance, _ in parts))
    return _around(fmean(values), error, satterthwaite(parts), n)


def satterthwaite(parts: Sequence[tuple[float, float]]) -> float:
    """Return the degrees of freedom of a sum of variances, each with its own; 1 if all are zero."""
    bottom = sum(variance**2 / degrees for variance, degrees in parts)
    return sum(variance for variance, _ in parts) ** 2 / bottom if bottom else 1.0


def _around(mean: float, error: float, degrees: float, n: int, level: float = LEVEL) -> Interval:
    half = float(stats.t.isf((1 - level) / 2, degrees)) * error
    return Interval(mean, mean - half, mean + half, n)
