"""Looks at a growing number of seeds: group-sequential bounds by spending of error.

Lan and DeMets (1983), with the spending function of O'Brien and Fleming's type, two-sided:
alpha(t) = 4 - 4 Phi(z_{alpha/4} / sqrt(t)) at the share t of the last look's seeds. Probabilities
follow from recursive integration (Armitage, McPherson and Rowe 1969).

A bound b of a normal statistic is converted to its p-level, 2 - 2 Phi(b). Comparing the p-value of
the t-test at that look with this level keeps the error approximately (Jennison and Turnbull 2000,
Section 3.8). The share t assumes that information grows with the number of seeds.
"""

from collections.abc import Sequence
from functools import cache, partial
from math import exp, log, sqrt

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(96)
_FAR = 38.0  # standard deviations; beyond them a float has no probability
_LEAST = 1e-300
#: Nodes, and the density at each times its weight; None before the first look.
Density = tuple[np.ndarray, np.ndarray] | None


@cache
def spending_bounds(alpha: float, shares: tuple[float, ...]) -> tuple[float, ...]:
    """Return the two-sided bounds that spend alpha like O'Brien and Fleming's.

    Parameters
    ----------
    shares : tuple of float
        The share of the information at each look, rising. The standard normal statistics Z_k times
        sqrt(t_k) are a Brownian motion if there is no effect.
    """
    bounds: list[float] = []
    spent = 0.0
    for k, share in enumerate(shares):
        wanted = max(_spent(alpha, share) - spent, _LEAST)
        density = _inside(bounds, shares[:k])
        upto = shares[: k + 1]
        bounds.append(float(brentq(partial(_excess, density, upto, wanted), 0.0, _FAR)))
        spent = _spent(alpha, share)
    return tuple(bounds)


def nominal_level(alpha: float, look: int, looks: Sequence[int]) -> float:
    """Return the p-level at a look (from 0) that spends alpha over all looks, numbers of seeds."""
    shares = tuple(n / looks[-1] for n in looks[: look + 1])
    return float(2 * norm.sf(spending_bounds(alpha, shares)[look]))


@cache
def repeated_p(p_value: float, look: int, looks: tuple[int, ...]) -> float:
    """Return the smallest alpha at whose bounds a p-value decides at a look (from 0).

    It is compared with 0.05, or corrected for other claims, as if there were only one look.
    """
    if p_value >= 1 or p_value <= _LEAST:
        return min(max(p_value, 0.0), 1.0)
    if nominal_level(1.0, look, looks) <= p_value:
        return 1.0

    def excess(exponent: float) -> float:
        return log(nominal_level(exp(exponent), look, looks)) - log(p_value)

    return min(1.0, exp(brentq(excess, log(p_value) - 1e-9, 0.0, xtol=1e-9)))


def look_at(seeds: int, looks: Sequence[int]) -> int | None:
    """Return the last look (from 0) that a number of seeds suffices for, None before the first."""
    reached = [k for k, n in enumerate(looks) if n <= seeds]
    return reached[-1] if reached else None


def _excess(density: Density, shares: Sequence[float], wanted: float, bound: float) -> float:
    return _exits(density, bound, shares) - wanted


def _spent(alpha: float, share: float) -> float:
    return float(4 * norm.sf(norm.isf(alpha / 4) / sqrt(share)))


def _inside(bounds: Sequence[float], shares: Sequence[float]) -> Density:
    """Return nodes and weighted density of the motion that stayed within all bounds, or None."""
    density: Density = None
    for k, bound in enumerate(bounds):
        edge = bound * sqrt(shares[k])
        nodes = edge * _POINTS
        if density is None:
            values = norm.pdf(nodes, scale=sqrt(shares[0]))
        else:
            step = sqrt(shares[k] - shares[k - 1])
            values = norm.pdf(nodes[:, None] - density[0], scale=step) @ density[1]
        density = nodes, edge * _WEIGHTS * values
    return density


def _exits(density: Density, bound: float, shares: Sequence[float]) -> float:
    """Return the probability of being beyond a bound at the last of the shares."""
    edge = bound * sqrt(shares[-1])
    if density is None:
        return float(2 * norm.sf(edge / sqrt(shares[0])))
    nodes, weighted = density
    step = sqrt(shares[-1] - shares[-2])
    return float((norm.sf((edge - nodes) / step) + norm.sf((edge + nodes) / step)) @ weighted)
