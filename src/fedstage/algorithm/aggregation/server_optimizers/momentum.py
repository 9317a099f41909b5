"""FedAvgM (Hsu, Qi and Brown 2019): momentum on the server.

    b <- beta b + Delta        x <- x + eta b

from b = 0. With beta = 0 and eta = 1 it is the participants' mean.
"""

from functools import partial

import torch

from fedstage.algorithm.aggregation.averages import by_parts, room_for
from fedstage.settings.aggregation import ServerMomentum
from fedstage.weights import Tensors, Weights


def step(
    settings: ServerMomentum, weights: Tensors, change: Tensors, state: Tensors
) -> tuple[Weights, Weights]:
    """Return the next weights, and b as ``b/NAME``."""
    moved, after = room_for(weights), room_for(weights)
    for name, value in weights.items():
        before = state.get(f"b/{name}", torch.zeros_like(value))
        by_parts(partial(_step, settings), [moved[name], after[name]], value, change[name], before)
    return moved, {f"b/{name}": momentum for name, momentum in after.items()}


def _step(
    settings: ServerMomentum, value: torch.Tensor, delta: torch.Tensor, before: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the next x and b, both in float64."""
    momentum = settings.beta * before + delta
    return value + settings.learning_rate * momentum, momentum
