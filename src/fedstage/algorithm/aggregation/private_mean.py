"""DP-FedAvg: the mean of clipped changes with noise (McMahan et al. 2018, Algorithm 1).

With D_i = w_i - w*_{t-1} over all parameters together, and n the expected number of participants,

    w_t = w*_{t-1} + 1/n (sum_i D_i min(1, C / ||D_i||) + N(0, z^2 C^2 I))

so that a client moves the sum by at most C. All participants weigh the same. One that is absent, or
dropped, adds 0 to the sum, which is still divided by n; noise is added in any case.
"""

from collections.abc import Sequence

import torch

from fedstage.algorithm.aggregation.averages import PART, add_scaled, room_for
from fedstage.settings.privacy import Noise
from fedstage.weights import Tensors, Weights


def private_mean(
    settings: Noise,
    models: Sequence[Tensors],
    start: Tensors,
    expected: float,
    generator: torch.Generator,
) -> Weights:
    """Return the parameters w_t, in the types of `start`, computed in float64.

    A model no further away than C is used unchanged. Without noise and clipping, the result is
    therefore the plain average, bit for bit.

    Parameters
    ----------
    models : sequence of dict
        w_i of the participants, with the tensors of `start` among others.
    start : dict
        w*_{t-1}, parameters without buffers.
    expected : float
        n.
    generator : torch.Generator
        Draws the noise, for the tensors in the order of their names.
    """
    factors = [clip_factor(model, start, settings.clip) for model in models]
    share = 1.0 / expected
    kept = expected - sum(factor == 1.0 for factor in factors)  # the weight of the start
    result = room_for(start)
    for name in sorted(start):
        before = start[name]
        mean = torch.zeros(before.shape, dtype=torch.float64)
        for model, factor in zip(models, factors, strict=True):
            whole = factor == 1.0
            add_scaled(mean, share * factor, model[name], None if whole else before)
        if kept:
            add_scaled(mean, share * kept, before)
        if settings.noise and settings.clip is not None:
            noise = torch.randn(before.shape, dtype=torch.float64, generator=generator)
            add_scaled(mean, share * settings.noise * settings.clip, noise)
        result[name].copy_(mean)
    return result


def clip_factor(model: Tensors, start: Tensors, clip: float | None) -> float:
    """Return min(1, C / ||w - start||) over the parameters together; 1 if C is None."""
    if clip is None:
        return 1.0
    length = sum(_squares(model[name], start[name]) for name in sorted(start)) ** 0.5
    return 1.0 if length <= clip else clip / length


def _squares(value: torch.Tensor, before: torch.Tensor) -> float:
    """Return the sum of squared differences, in float64, one part at a time."""
    pairs = zip(value.reshape(-1).split(PART), before.reshape(-1).split(PART), strict=True)
    return sum(float((one.double() - other.double()).square().sum()) for one, other in pairs)
