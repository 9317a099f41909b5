"""FedBE's Gaussian over models, as published: w ~ Normal(mu, diag v) over the parameters.

With p_i the shares of the clients in the aggregation,

    mu = sum_i p_i w_i    v = sum_i p_i (w_i - mu)^2

so that its mean is the clients' average.
"""

from collections.abc import Sequence

import torch

from fedstage.storage.tensors import Weights


def sample(
    models: Sequence[Weights], weights: Sequence[float], generator: torch.Generator
) -> Weights:
    """Draw one model.

    Parameters
    ----------
    models : sequence of dict
        The parameters of the clients' models.
    weights : sequence of float
        One a model, proportional to p_i.

    Returns
    -------
    dict
        Parameters of the same names, shapes and types.
    """
    shares = torch.tensor(weights, dtype=torch.float64)
    shares /= shares.sum()
    drawn = {}
    for name, tensor in models[0].items():
        values = torch.stack([model[name].double() for model in models])
        drawn[name] = _draw(values, shares, generator).to(tensor.dtype)
    return drawn


def _draw(values: torch.Tensor, shares: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Draw from the values [clients, ...] of one parameter."""
    mean = torch.tensordot(shares, values, 1)
    variance = torch.tensordot(shares, (values - mean) ** 2, 1)
    noise = torch.randn(mean.shape, generator=generator, dtype=torch.float64)
    drawn: torch.Tensor = mean + variance.sqrt() * noise
    return drawn
