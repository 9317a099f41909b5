"""The server's step of FedDyn (Acar et al. 2021) and FedDC (Gao et al. 2022).

    h <- h + (P / N) Delta        x <- x + Delta + h

for P of N clients in a round. h is the mean of all clients' drifts, the sums of their changes; in
FedDyn's notation it is -h / alpha. P counts dropped updates, too.
"""

import torch

from fedstage.algorithm.aggregation.averages import by_parts, room_for
from fedstage.settings.aggregation import ServerDrift
from fedstage.weights import Tensors, Weights


def step(
    settings: ServerDrift, weights: Tensors, change: Tensors, state: Tensors, share: float
) -> tuple[Weights, Weights]:
    """Return the next weights, and h as ``h/NAME``."""
    moved, after = room_for(weights), room_for(weights)

    def numbers(
        value: torch.Tensor, delta: torch.Tensor, drift: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        drift = drift + share * delta
        return value + delta + drift, drift

    for name, value in weights.items():
        before = state.get(f"h/{name}", torch.zeros_like(value))
        by_parts(numbers, [moved[name], after[name]], value, change[name], before)
    return moved, {f"h/{name}": drift for name, drift in after.items()}
