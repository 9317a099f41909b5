"""The number of seeds that would decide a claim, from the deviation over the seeds at hand."""

from collections.abc import Sequence
from math import inf, isfinite, isnan, sqrt
from statistics import fmean, stdev

from scipy import stats

from fedstage.results.claims.effects import Effect, stated_range
from fedstage.results.claims.looks import nominal_level
from fedstage.settings.claims import Claim

#: The probability that the seeds decide.
POWER = 0.8
_MOST = 1_000_000


def seeds_needed(
    claim: Claim, effect: Effect, level: float, looks: Sequence[int] = (), share: float = 1.0
) -> int | None:
    """Return how many seeds a paired t-test needs to find an effect at a level, or None.

    The effect to find is a `share` of the distance of the published effect from the nearest claimed
    bound. Instead of a published effect, the middle of the stated range is used, or else the
    margin, or else the measured effect. With `looks`, the level is the last one's. None if the
    deviation is unknown, or if the effect is on a bound.
    """
    if len(effect.values) < 2:
        return None
    distance = share * _distance(claim, expected(claim, effect))
    level = nominal_level(level, len(looks) - 1, looks) if looks else level
    deviation = stdev(effect.values)
    if not distance:
        return None
    return seeds_for(distance / deviation, level) if deviation else 2


def expected(claim: Claim, effect: Effect) -> float:
    """Return the effect that is to be found."""
    if effect.published is not None:
        return effect.published
    stated = stated_range(claim)
    if stated is not None:
        return fmean(stated)
    return effect.measured.mean if claim.margin is None else claim.margin


def seeds_for(size: float, level: float, power: float = POWER) -> int | None:
    """Return the least n at which a two-sided t-test finds a mean of `size` deviations.

    None if more than a million are needed.
    """
    low, high = 1, 2
    while _power(size, high, level) < power:
        low, high = high, 2 * high
        if high > _MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(size, middle, level) >= power else (middle, high)
    return high


def _power(size: float, n: int, level: float) -> float:
    """Return the power of a two-sided t-test of n values against a mean of `size` deviations."""
    critical, shift = stats.t.isf(level / 2, n - 1), size * sqrt(n)
    found = stats.nct.sf(critical, n - 1, shift) + stats.nct.cdf(-critical, n - 1, shift)
    return 1.0 if isnan(found) else float(found)  # beyond the noncentralities that scipy computes


def _distance(claim: Claim, value: float) -> float:
    """Return how far an effect is from the nearest finite bound of a claim."""
    return min((abs(value - bound) for bound in claim.bounds if isfinite(bound)), default=inf)
