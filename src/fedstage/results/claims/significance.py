"""P-values: how surprising the measurements would be if a claim were false, or true."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import isinf
from typing import Literal, NamedTuple

from scipy import stats

from fedstage.results.intervals import few_equal
from fedstage.settings.scores import Axis

#: The error that is allowed to all verdicts of a family together.
LEVEL = 0.05
#: Corrections for the number of p-values: for the probability of any error (Holm 1979), and for the
#: expected share of errors among findings (Benjamini and Hochberg 1995).
Correction = Literal["holm", "fdr_bh"]


class PValues(NamedTuple):
    """The p-values of an effect: as claimed, beyond the claimed bounds, and within the margin."""

    holds: float = 1.0
    contradicted: float = 1.0
    nil: float = 1.0

    @property
    def smallest(self) -> float:
        """The p-value of the verdict that is nearest."""
        return min(self)

    def times(self, factor: float) -> "PValues":
        """Return all of them times a factor, at most 1."""
        return PValues(*(min(1.0, factor * p) for p in self))


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


def p_nil(values: Sequence[float], margin: float) -> float:
    """Return the p-value of a mean nearer to 0 than a margin, by two one-sided t-tests (TOST).

    It is the larger of the two one-sided p-values (Schuirmann 1987), and at most 0.05 if the 90 %
    confidence interval is within the margin. With fewer than two values it is 1.
    """
    above = _p_above(values, -margin, closed=False)
    return max(above, _p_above([-value for value in values], -margin, closed=False))


def p_of_differences(differences: Sequence[float]) -> float:
    """Return the two-sided p-value of the paired t-test, 1 for `few_equal` differences.

    These have no deviation to test by, and may be the same by chance.
    """
    return 1.0 if few_equal(differences) else p_outside(differences, 0.0, 0.0)


def paired(left: Mapping[Axis, float], right: Mapping[Axis, float]) -> list[float]:
    """Return the difference left - right of each seed that both have."""
    return [value - right[seed] for seed, value in left.items() if seed in right]


def corrected(p_values: Sequence[float], by: Correction) -> list[float]:
    """Return adjusted p-values, in the order given, at most 1.

    All effects with a p-value of at most 0.05 may be believed together.
    """
    if by == "holm" or not p_values:
        return holm(p_values)
    return [float(p) for p in stats.false_discovery_control(p_values, method="bh")]


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm's method (1979), in the order given.

    The smallest of m is multiplied by m, the next by m - 1, and so on; none is below one before it.
    """
    # The same as multipletests of statsmodels, whose import and collections of garbage take a
    # second for each table.
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    steps = ((len(order) - rank) * p_values[place] for rank, place in enumerate(order))
    adjusted = dict(zip(order, accumulate(steps, max), strict=True))
    return [min(1.0, adjusted[place]) for place in range(len(p_values))]


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
