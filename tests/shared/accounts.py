"""Epsilon by Rényi divergences, straight from dp-accounting, to compare others with."""

import dp_accounting
from dp_accounting import rdp


def renyi_epsilon(noise, rate, steps, delta):
    """Return epsilon of Gaussian noise on Poisson samples (Mironov 2017)."""
    event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise))
    return rdp.RdpAccountant().compose(event, steps).get_epsilon(delta)
