"""No optimiser: x <- x + Delta, which is the participants' mean (McMahan et al. 2017)."""

from fedstage.settings.aggregation import ServerAverage
from fedstage.weights import Tensors, Weights


def step(
    settings: ServerAverage, weights: Tensors, change: Tensors, state: Tensors
) -> tuple[Weights, Weights]:
    """Return x + Delta, and no state."""
    moved = {
        name: (value.double() + change[name].double()).to(value.dtype)
        for name, value in weights.items()
    }
    return moved, {}
