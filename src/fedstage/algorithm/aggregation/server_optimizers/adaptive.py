"""FedAdam and FedYogi (Reddi et al. 2021, Algorithm 2).

    m <- beta1 m + (1 - beta1) Delta
    v <- beta2 v + (1 - beta2) Delta^2                           FedAdam
    v <- v - (1 - beta2) Delta^2 sign(v - Delta^2)               FedYogi
    x <- x + eta m / (sqrt(v) + epsilon)

elementwise, from m = 0. v starts at 0 (``zero``), as in FLamby's code and in FENS's, whose first v
= (1 - beta2) Delta^2 is the same. Alternatively it starts at epsilon^2, the least that the paper
allows. The paper has no bias correction. An element that no participant has ever moved stays where
it is. FedYogi's v changes by at most (1 - beta2) Delta^2, however large v is: it forgets a large
Delta slowly.
"""

from functools import partial

import torch

from fedstage.algorithm.aggregation.averages import by_parts, room_for
from fedstage.settings.aggregation import Adaptive, ServerYogi
from fedstage.weights import Tensors, Weights


def step(
    settings: Adaptive, weights: Tensors, change: Tensors, state: Tensors
) -> tuple[Weights, Weights]:
    """Return the next weights, and ``m/NAME``, ``v/NAME`` and the number of steps ``t``."""
    steps = int(state["t"]) + 1 if state else 1
    moved, first, second = (room_for(weights) for _ in range(3))
    numbers = partial(_numbers, settings)
    for name, value in weights.items():
        before = [state[f"m/{name}"], state[f"v/{name}"]] if state else _zero(settings, value)
        by_parts(numbers, [moved[name], first[name], second[name]], value, change[name], *before)
    after = {"t": torch.tensor(steps)}
    after |= {f"m/{name}": moment for name, moment in first.items()}
    return moved, after | {f"v/{name}": moment for name, moment in second.items()}


def _zero(settings: Adaptive, value: torch.Tensor) -> list[torch.Tensor]:
    """Return m and v before the first step."""
    least = 0.0 if settings.v_start == "zero" else settings.epsilon**2
    return [torch.zeros_like(value), torch.full_like(value, least, dtype=torch.float64)]


def _numbers(
    settings: Adaptive,
    value: torch.Tensor,
    delta: torch.Tensor,
    first: torch.Tensor,
    second: torch.Tensor,
) -> tuple[torch.Tensor, ...]:
    """Return the next x, m and v, all in float64."""
    first = settings.beta1 * first + (1 - settings.beta1) * delta
    squared, own = delta.square(), 1 - settings.beta2
    if isinstance(settings, ServerYogi):
        second = second - own * squared * (second - squared).sign()
    else:
        second = settings.beta2 * second + own * squared
    root = second.sqrt() + settings.epsilon
    return value + settings.learning_rate * (first / root), first, second
