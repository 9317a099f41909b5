"""Changes of models as integers mod 2^32, so that sums are exact and masks hide them.

    q(x) = round at random of (clip(x, -c, c) + c) / h,   h = 2c / (2^bits - 1)

is rounded down or up at random so that its expectation is x. A sum of n integers stays below 2^32
if n (2^bits - 1) < 2^32, which the settings check. The sum of the changes is then h sum q - n c,
and differs from the sum of the clipped changes by at most n h.
"""

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.uint32]
Numbers = npt.NDArray[np.float64]


def width(clip: float, bits: int) -> float:
    """Return h, the distance between neighbouring values."""
    return 2 * clip / ((1 << bits) - 1)


def quantise(values: Numbers, clip: float, bits: int, generator: np.random.Generator) -> Integers:
    """Return q(x), uint32 [P] in 0, ..., 2^bits - 1, of values [P]."""
    scaled = (np.clip(values, -clip, clip) + clip) / width(clip, bits)
    rounded = np.floor(scaled + generator.random(len(scaled)))
    return np.minimum(rounded, (1 << bits) - 1).astype(np.uint32)


def dequantise(total: Integers, summands: int, clip: float, bits: int) -> Numbers:
    """Return the sum of changes [P] from the sum of `summands` participants' integers [P]."""
    return total.astype(np.float64) * width(clip, bits) - summands * clip
