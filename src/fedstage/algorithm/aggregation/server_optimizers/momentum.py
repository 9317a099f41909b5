"""FedAvgM (Hsu, Qi and Brown 2019): momentum on the server.

    heavy_ball   b <- beta b + Delta               x <- x + eta b
    damped       b <- beta b + (1 - beta) Delta    x <- x + eta b
    nesterov     b <- beta b + Delta               x <- x + eta (Delta + beta b)

All start from b = 0. In a steady direction the damped form moves 1 - beta times as far as the
others. With beta = 0 and eta = 1 all of them are the participants' mean.
"""

from functools import partial

import torch

from fedstage.algorithm.aggregation.parts import by_parts, room_for
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
    fresh = delta * (1 - settings.beta) if settings.form == "damped" else delta
    momentum = settings.beta * before + fresh
    along = delta + settings.beta * momentum if settings.form == "nesterov" else momentum
    return value + settings.learning_rate * along, momentum
