"""FedBE's Gaussian over models as released: over the directions of updates, tensor by tensor.

With w_0 the global model that the round started from and every client of the same weight,

    u_i = (w_i - w_0) / ||w_i - w_0||    m = mean u_i    v = max(mean u_i^2 - m^2, 1e-5)
    w   = w_0 + mean_i ||w_i - w_0|| (m + 0.1 sqrt(v) eps)      eps ~ Normal(0, I)

so that its mean is the clients' average only if all their updates are of one length.
"""

from collections.abc import Sequence

import torch

from fedstage.storage.tensors import Weights

SCALE, LEAST_VARIANCE = 0.1, 1e-5


def sample(models: Sequence[Weights], start: Weights, generator: torch.Generator) -> Weights:
    """Draw one model.

    Parameters
    ----------
    models : sequence of dict
        The parameters of the clients' models.
    start : dict
        w_0.

    Returns
    -------
    dict
        Parameters of the same names, shapes and types.
    """
    drawn = {}
    for name, tensor in models[0].items():
        values = torch.stack([model[name].double() for model in models])
        drawn[name] = _draw(values, start[name].double(), generator).to(tensor.dtype)
    return drawn


def _draw(values: torch.Tensor, start: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Draw from the values [clients, ...] of one parameter."""
    moves = (values - start).flatten(1)
    lengths = moves.norm(dim=1, keepdim=True)
    # A tensor that a client did not move has no direction: the released code divides by 0 there.
    directions = moves / lengths.where(lengths > 0, 1.0)
    mean = directions.mean(0)
    variance = ((directions**2).mean(0) - mean**2).clamp(min=LEAST_VARIANCE)
    noise = torch.randn(start.shape, generator=generator, dtype=torch.float64).flatten()
    move: torch.Tensor = lengths.mean() * (mean + SCALE * variance.sqrt() * noise)
    return start + move.view(start.shape)
