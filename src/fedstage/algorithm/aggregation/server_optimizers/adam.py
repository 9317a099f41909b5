"""FedAdam (Reddi et al. 2021, Algorithm 2): v <- beta2 v + (1 - beta2) Delta^2."""

import torch

from fedstage.algorithm.aggregation.server_optimizers.adaptive import adaptive_step
from fedstage.settings.aggregation import ServerAdam
from fedstage.storage.tensors import Weights


def step(
    settings: ServerAdam, weights: Weights, change: Weights, state: Weights
) -> tuple[Weights, Weights]:
    """Return the next weights and moments."""
    return adaptive_step(settings, weights, change, state, _second_moment)


def _second_moment(v: torch.Tensor, squared: torch.Tensor, beta2: float) -> torch.Tensor:
    return beta2 * v + (1 - beta2) * squared
