"""Vectors: a client's contribution to the sums of a round as integers, and its decoding.

    x_u = (q(f_u Delta_u), q(g_u), n_u)   with f_u = n_u / n_max, or 1 where updates weigh the same

where Delta_u is the change of a model, g_u is sent with it (for SCAFFOLD the change of the control
variates, which weigh the same), and n_u is the number of samples. Each part of a vector has its
tensors in the order of their names. The sum over S clients gives the weighted mean of changes, sum
f_u Delta_u / sum f_u, the sum of g_u, and the number of samples.

Integers are mod 2^32, so that sums are exact and masks hide them.

    q(x) = round at random of (clip(x, -c, c) + c) / h,   h = 2c / (2^bits - 1)

is rounded down or up at random so that its expectation is x. A sum of n integers stays below 2^32
if n (2^bits - 1) < 2^32, which the settings check. The sum of the changes is then h sum q - n c,
and differs from the sum of the clipped changes by at most n h.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from fedstage.errors import FedstageError
from fedstage.settings.aggregation import SecureAggregation
from fedstage.weights import Tensors, Weights

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


Weighting = Literal["samples", "uniform"]
#: The change of a model, or what is sent with it, by name.
Change = Mapping[str, torch.Tensor]


class Mean(NamedTuple):
    """The decoded sums of a round, by name and in float64."""

    change: Weights  # the clients' mean
    payload: Weights  # the clients' sum
    samples: int


def check_samples(
    settings: SecureAggregation, samples: int, client: int, setting: str = "aggregation.secure"
) -> None:
    """Raise FedstageError if a client has more samples than the bound."""
    if samples > settings.most_samples:
        raise FedstageError(
            f"{setting}.most_samples = {settings.most_samples}: must be at least {samples}, the "
            f"samples of client {client}"
        )


def encode(
    settings: SecureAggregation,
    weighting: Weighting,
    change: Change,
    payload: Change,
    samples: int,
    generator: np.random.Generator,
) -> Integers:
    """Return x_u, uint32 [P + Q + 1]; n_u is its last number."""
    factor = samples / settings.most_samples if weighting == "samples" else 1.0
    clips = (settings.clip, settings.payload_clip or settings.clip)
    parts = (factor * _flat(change), _flat(payload))
    quantised = [
        quantise(part, clip, settings.bits, generator)
        for part, clip in zip(parts, clips, strict=True)
    ]
    return np.concatenate([*quantised, np.array([samples], dtype=np.uint32)])


def decode(
    settings: SecureAggregation,
    weighting: Weighting,
    total: Integers,
    summands: int,
    like: Tensors,
    sent: Tensors,
) -> Mean:
    """Decode a sum of vectors, uint32 [P + Q + 1], of `summands` clients.

    `like` has tensors shaped like the parameters, `sent` like what is sent with them.
    """
    samples = int(total[-1])
    factors = samples / settings.most_samples if weighting == "samples" else float(summands)
    clips = (settings.clip, settings.payload_clip or settings.clip)
    end = sum(one.numel() for one in like.values())
    change, payload = (
        dequantise(part, summands, clip, settings.bits)
        for part, clip in zip((total[:end], total[end:-1]), clips, strict=True)
    )
    return Mean(_shaped(change / factors, like), _shaped(payload, sent), samples)


def _flat(tensors: Change) -> Numbers:
    if not tensors:
        return np.zeros(0)
    parts = [tensors[name].detach().double().flatten() for name in sorted(tensors)]
    return torch.cat(parts).cpu().numpy()


def _shaped(numbers: Numbers, like: Tensors) -> Weights:
    names = sorted(like)
    parts = torch.from_numpy(numbers).split([like[name].numel() for name in names])
    return {name: part.reshape(like[name].shape) for name, part in zip(names, parts, strict=True)}
