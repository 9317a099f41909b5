"""Vectors: a client's change of a model as integers, with its number of samples, and back.

    x_u = (q(f_u Delta_u), n_u)   with f_u = n_u / n_max, or 1 where updates weigh the same

All vectors have the parameters in the order of their names. From the sum over S clients follow the
weighted mean of changes, sum f_u Delta_u / sum f_u, and the number of samples.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
import torch

from fedstage.algorithm.secure.quantisation import Integers, dequantise, quantise
from fedstage.settings.secure import SecureAggregation
from fedstage.weights import Tensors, Weights

Weighting = Literal["samples", "uniform"]


class Mean(NamedTuple):
    """The mean change of clients, by parameter and in float64, and their samples."""

    change: Weights
    samples: int


def encode(
    settings: SecureAggregation,
    weighting: Weighting,
    change: Mapping[str, torch.Tensor],
    samples: int,
    generator: np.random.Generator,
) -> Integers:
    """Return x_u, uint32 [P + 1], of the change of each parameter; n_u is its last number."""
    factor = samples / settings.most_samples if weighting == "samples" else 1.0
    flat = torch.cat([change[name].double().flatten() for name in sorted(change)]).numpy()
    quantised = quantise(factor * flat, settings.clip, settings.bits, generator)
    return np.append(quantised, np.uint32(samples))


def decode(
    settings: SecureAggregation, weighting: Weighting, total: Integers, summands: int, like: Tensors
) -> Mean:
    """Return the mean of changes from a sum of vectors, uint32 [P + 1].

    `like` has a tensor of the shape of each parameter.
    """
    samples = int(total[-1])
    factors = samples / settings.most_samples if weighting == "samples" else summands
    flat = torch.from_numpy(dequantise(total[:-1], summands, settings.clip, settings.bits))
    names = sorted(like)
    parts = flat.div_(factors).split([like[name].numel() for name in names])
    change = {name: part.reshape(like[name].shape) for name, part in zip(names, parts, strict=True)}
    return Mean(change, samples)
