"""The privacy that noise gives: epsilon for a delta, computed with the package `dp-accounting`.

A mechanism is (epsilon, delta)-differentially private if for all data D and D' that differ in one
unit, which is a client or an example, and all sets S of outputs

    P[M(D) in S] <= exp(epsilon) P[M(D') in S] + delta

Each step releases the sum, over a sample of all units, of vectors no longer than C, with Gaussian
noise of deviation z C for every number (Abadi et al. 2016; McMahan et al. 2018).
"""

from functools import cache
from math import inf


@cache
def poisson_epsilon(noise: float, rate: float, steps: int, delta: float) -> float:
    """Return epsilon if each unit is sampled independently in each step, with probability `rate`.

    Units are added or removed. A rate of 1 means that all units are in every sample. Computed from
    distributions of privacy loss (Koskela et al. 2020).

    Parameters
    ----------
    noise : float
        z, the noise's deviation as a multiple of the largest length; if 0, epsilon is infinite.
    """
    if not noise or not steps:
        return inf if steps else 0.0
    import dp_accounting
    from dp_accounting import pld

    event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise))
    known = pld.PLDAccountant()
    known.compose(event, steps)
    return float(known.get_epsilon(delta))


@cache
def fixed_size_epsilon(noise: float, sampled: int, units: int, steps: int, delta: float) -> float:
    """Return epsilon if each step samples `sampled` of `units` without replacement.

    The number of units is public, so neighbours differ in one replaced unit: a sum changes by up to
    2 C, and noise counts half. Computed from Rényi divergences (Wang, Balle, Kasiviswanathan 2019,
    Theorem 27).
    """
    if not noise or not steps:
        return inf if steps else 0.0
    import dp_accounting
    from dp_accounting import rdp

    gaussian = dp_accounting.GaussianDpEvent(noise / 2)
    event = dp_accounting.SampledWithoutReplacementDpEvent(units, sampled, gaussian)
    known = rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
    known.compose(event, steps)
    return float(known.get_epsilon(delta))
