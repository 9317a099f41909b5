"""No optimiser: x <- x + Delta, which is the participants' mean (McMahan et al. 2017)."""

import torch

from fedstage.algorithm.aggregation.averages import by_parts, room_for
from fedstage.settings.aggregation import ServerAverage
from fedstage.weights import Tensors, Weights


def step(
    settings: ServerAverage, weights: Tensors, change: Tensors, state: Tensors
) -> tuple[Weights, Weights]:
    """Return x + Delta, and no state."""
    moved = room_for(weights)
    for name, value in weights.items():
        by_parts(_moved, [moved[name]], value, change[name])
    return moved, {}


def _moved(value: torch.Tensor, change: torch.Tensor) -> tuple[torch.Tensor]:
    return (value + change,)
