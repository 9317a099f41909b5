"""Clients' noise in integers mod 2^32, Skellam-distributed, so that a sum's noise is, too.

The difference of two Poisson numbers of mean v / 2 has mean 0 and variance v. The sum of such
differences over s clients has the same distribution with variance s v (Agarwal, Kairouz, Liu 2021).
"""

import numpy as np
import numpy.typing as npt

from fedstage.algorithm.secure.quantisation import Integers
from fedstage.settings.secure import MODULUS


def skellam(count: int, variance: float, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return integers [count] with mean 0 and the given variance."""
    up, down = (generator.poisson(variance / 2, count) for _ in range(2))
    drawn: npt.NDArray[np.int64] = up - down
    return drawn


def with_noise(values: Integers, variance: float, generator: np.random.Generator) -> Integers:
    """Return integers, uint32 [P], plus noise, mod 2^32."""
    noisy = values.astype(np.int64) + skellam(len(values), variance, generator)
    return (noisy % MODULUS).astype(np.uint32)
