"""FedBE's Gaussians over models: Normal(mu, diag v) over the parameters.

As published, with p_i the shares of the clients in the aggregation,

    mu = sum_i p_i w_i    v = sum_i p_i (w_i - mu)^2    w = mu + sqrt(v) eps    eps ~ Normal(0, I)

so that its mean is the clients' average. As released, over the directions of updates, tensor by
tensor, with w_0 the global model that the round started from and equal shares,

    u_i = (w_i - w_0) / ||w_i - w_0||    m = mean u_i    v = max(mean u_i^2 - m^2, 1e-5)
    w   = w_0 + mean_i ||w_i - w_0|| (m + 0.1 sqrt(v) eps)

so that its mean is the clients' average only if all their updates have the same length.
"""

from collections.abc import Sequence

import torch

from fedstage.weights import Tensors, Weights

SCALE, LEAST_VARIANCE = 0.1, 1e-5


def sample(
    models: Sequence[Tensors], weights: Sequence[float], generator: torch.Generator
) -> Weights:
    """Draw the parameters of one model as published; the weights are proportional to p_i."""
    shares = torch.tensor(weights, dtype=torch.float64)
    shares /= shares.sum()
    drawn = {}
    for name, tensor in models[0].items():
        values = _stacked(models, name)
        mean = torch.tensordot(shares, values, 1)
        variance = torch.tensordot(shares, (values - mean) ** 2, 1)
        drawn[name] = (mean + variance.sqrt() * _noise(tensor, generator)).to(tensor.dtype)
    return drawn


def sample_as_released(
    models: Sequence[Tensors], start: Weights, generator: torch.Generator
) -> Weights:
    """Draw the parameters of one model as released; `start` is w_0."""
    drawn = {}
    for name, tensor in models[0].items():
        before = start[name].double()
        moves = (_stacked(models, name) - before).flatten(1)
        lengths = moves.norm(dim=1, keepdim=True)
        # A tensor that a client did not move has no direction: the released code divides by 0.
        directions = moves / lengths.where(lengths > 0, 1.0)
        mean = directions.mean(0)
        variance = ((directions**2).mean(0) - mean**2).clamp(min=LEAST_VARIANCE)
        noise = _noise(tensor, generator).flatten()
        move = lengths.mean() * (mean + SCALE * variance.sqrt() * noise)
        drawn[name] = (before + move.view(before.shape)).to(tensor.dtype)
    return drawn


def _stacked(models: Sequence[Tensors], name: str) -> torch.Tensor:
    """Return the values [clients, ...] of one parameter."""
    return torch.stack([model[name].double() for model in models])


def _noise(like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.randn(like.shape, generator=generator, dtype=torch.float64)
