"""Vectors: a client's contribution to the sums of a round as integers, and its decoding.

    x_u = (q(f_u Delta_u), q(g_u), n_u)   with f_u = n_u / n_max, or 1 where updates weigh the same

where Delta_u is the change of a model, g_u is sent with it (for SCAFFOLD the change of the control
variates, which weigh the same), and n_u is the number of samples. Each part of a vector has its
tensors in the order of their names. The sum over S clients gives the weighted mean of changes, sum
f_u Delta_u / sum f_u, the sum of g_u, and the number of samples.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
import torch

from fedstage.algorithm.secure.quantisation import (
    Integers,
    Numbers,
    dequantise,
    quantise,
)
from fedstage.errors import FedstageError
from fedstage.settings.secure import SecureAggregation
from fedstage.weights import Tensors, Weights

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
