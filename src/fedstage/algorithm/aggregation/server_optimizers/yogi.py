"""FedYogi (Reddi et al. 2021, Algorithm 2): v <- v - (1 - beta2) Delta^2 sign(v - Delta^2).

v changes by (1 - beta2) Delta^2 at most, however large it is: it forgets a large Delta slowly.
"""

import torch

from fedstage.algorithm.aggregation.server_optimizers.adaptive import adaptive_step
from fedstage.settings.aggregation import ServerYogi
from fedstage.storage.tensors import Weights


def step(
    settings: ServerYogi, weights: Weights, change: Weights, state: Weights
) -> tuple[Weights, Weights]:
    """Return the next weights and moments."""
    return adaptive_step(settings, weights, change, state, _second_moment)


def _second_moment(v: torch.Tensor, squared: torch.Tensor, beta2: float) -> torch.Tensor:
    return v - (1 - beta2) * squared * (v - squared).sign()
