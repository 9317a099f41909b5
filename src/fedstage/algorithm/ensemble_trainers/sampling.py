"""The models that a Bayesian ensemble draws from a distribution over its clients' models (FedBE).

The ensemble consists of these models, the clients' models and their average, all with equal
weights. Only parameters are drawn. The running statistics of batch normalisation, which the paper
does not mention, are not, since a variance must not become negative. A model drawn from a Gaussian
has the averaged model's statistics; one drawn from a Dirichlet distribution combines the clients'
statistics as it combines their parameters.

The Gaussians are Normal(mu, diag v) over the parameters.

As published, with p_i the shares of the clients in the aggregation,

    mu = sum_i p_i w_i    v = sum_i p_i (w_i - mu)^2    w = mu + sqrt(v) eps    eps ~ Normal(0, I)

so that its mean is the clients' average. As released, over the directions of updates, tensor by
tensor, with w_0 the global model that the round started from and equal shares,

    u_i = (w_i - w_0) / ||w_i - w_0||    m = mean u_i    v = max(mean u_i^2 - m^2, 1e-5)
    w   = w_0 + mean_i ||w_i - w_0|| (m + 0.1 sqrt(v) eps)

so that its mean is the clients' average only if all their updates have the same length.

The Dirichlet distribution is over models: w = sum_i gamma_i w_i with gamma ~ Dir(1, ..., 1).
"""

from collections.abc import Collection, Sequence

import numpy as np
import torch

from fedstage.algorithm.aggregation.averages import average_weights
from fedstage.randomness import Key, numpy_generator, torch_generator
from fedstage.settings.ensembles import Bayesian
from fedstage.weights import Tensors, Weights, renamed

SCALE, LEAST_VARIANCE = 0.1, 1e-5


def draw(
    settings: Bayesian,
    clients: Sequence[Tensors],
    weights: Sequence[float],
    aggregated: Weights,
    start: Weights | None,
    parameters: Collection[str],
    key: tuple[Key, ...],
) -> list[Weights]:
    """Draw the models of one round and group.

    Each has its own generator, so that the first 10 of 20 models are the same as 10 drawn alone.

    Parameters
    ----------
    clients, weights
        The models of the group's participants, and their weights in the aggregation.
    aggregated : dict
        w_{t,k}, for its buffers.
    start : dict, optional
        The model that the round started from, which only `as_released` reads.
    parameters : collection of str
        The names of the model's parameters.
    key : tuple
        Key of the random generators: seed, stage, round and group.
    """
    models = [renamed(client, {name: name for name in parameters}) for client in clients]

    def model(number: int) -> Weights:
        own = (*key, settings.distribution, number)
        if settings.distribution == "dirichlet":
            return dirichlet(clients, numpy_generator(*own))
        generator = torch_generator(*own)
        if settings.variant == "as_published":
            return aggregated | gaussian(models, weights, generator)
        assert start is not None, "the graph gives it to this variant"
        return aggregated | gaussian_as_released(models, start, generator)

    return [model(number) for number in range(settings.samples)]


def gaussian(
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


def gaussian_as_released(
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


def dirichlet(models: Sequence[Tensors], generator: np.random.Generator) -> Weights:
    """Draw one model: a convex combination of the clients', running statistics included."""
    gamma = generator.dirichlet([1.0] * len(models))
    return average_weights(models, gamma.tolist())


def _stacked(models: Sequence[Tensors], name: str) -> torch.Tensor:
    """Return the values [clients, ...] of one parameter."""
    return torch.stack([model[name].double() for model in models])


def _noise(like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.randn(like.shape, generator=generator, dtype=torch.float64)
