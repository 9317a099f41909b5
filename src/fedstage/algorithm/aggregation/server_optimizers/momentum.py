"""FedAvgM (Hsu, Qi and Brown 2019): momentum on the server.

    heavy_ball   b <- beta b + Delta               x <- x + eta b
    damped       b <- beta b + (1 - beta) Delta    x <- x + eta b
    nesterov     b <- beta b + Delta               x <- x + eta (Delta + beta b)

All start from b = 0. In a steady direction the damped form moves 1 - beta times as far as the
others. With beta = 0 and eta = 1 all of them are the participants' mean.
"""

import torch

from fedstage.settings.aggregation import ServerMomentum
from fedstage.weights import Tensors, Weights


def step(
    settings: ServerMomentum, weights: Tensors, change: Tensors, state: Tensors
) -> tuple[Weights, Weights]:
    """Return the next weights, and b as ``b/NAME``."""
    moved, after = {}, {}
    for name, value in weights.items():
        delta = change[name].double()
        before = state.get(f"b/{name}", torch.zeros_like(value)).double()
        fresh = delta * (1 - settings.beta) if settings.form == "damped" else delta
        momentum = settings.beta * before + fresh
        along = delta + settings.beta * momentum if settings.form == "nesterov" else momentum
        moved[name] = (value.double() + settings.learning_rate * along).to(value.dtype)
        after[f"b/{name}"] = momentum.to(value.dtype)
    return moved, after
