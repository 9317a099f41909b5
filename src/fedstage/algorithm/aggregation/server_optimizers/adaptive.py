"""What Adam and Yogi have in common (Reddi et al. 2021, Algorithm 2).

    m <- beta1 m + (1 - beta1) Delta
    v <- the optimiser's own rule, of v and Delta^2
    x <- x + eta m / (sqrt(v) + epsilon)          or eta m / sqrt(v + epsilon)

elementwise, from m = 0. v starts at 0 (``zero``), as in FLamby's code and in FENS's, whose first
v = (1 - beta2) Delta^2 is the same; or at epsilon^2, the least that the paper allows. The paper has
no bias correction; with it m and v are divided by 1 - beta1^t and 1 - beta2^t in step t (Kingma and
Ba 2015). An element that no participant has ever moved stays where it is.
"""

from collections.abc import Callable

import torch

from fedstage.settings.aggregation import Adaptive
from fedstage.storage.tensors import Weights

#: (v, Delta^2, beta2) -> the next v.
SecondMoment = Callable[[torch.Tensor, torch.Tensor, float], torch.Tensor]


def adaptive_step(
    settings: Adaptive, weights: Weights, change: Weights, state: Weights, rule: SecondMoment
) -> tuple[Weights, Weights]:
    """Return the next weights, and m, v and the number of steps as ``m/NAME``, ``v/NAME``, ``t``.

    Parameters
    ----------
    rule : Callable
        How the second moment follows Delta^2.
    """
    steps = int(state["t"]) + 1 if state else 1
    moved, after = {}, {"t": torch.tensor(steps)}
    for name, value in weights.items():
        first, second = _moments_before(settings, value, name, state)
        delta = change[name].double()
        first = settings.beta1 * first + (1 - settings.beta1) * delta
        second = rule(second, delta.square(), settings.beta2)
        along = _direction(settings, first, second, steps)
        moved[name] = (value.double() + settings.learning_rate * along).to(value.dtype)
        after |= {f"m/{name}": first.to(value.dtype), f"v/{name}": second.to(value.dtype)}
    return moved, after


def _moments_before(
    settings: Adaptive, value: torch.Tensor, name: str, state: Weights
) -> tuple[torch.Tensor, torch.Tensor]:
    if state:
        return state[f"m/{name}"].double(), state[f"v/{name}"].double()
    zero = torch.zeros_like(value, dtype=torch.float64)
    return zero, zero if settings.v_start == "zero" else zero + settings.epsilon**2


def _direction(
    settings: Adaptive, first: torch.Tensor, second: torch.Tensor, steps: int
) -> torch.Tensor:
    if settings.bias_correction:
        first = first / (1 - settings.beta1**steps)
        second = second / (1 - settings.beta2**steps)
    if settings.epsilon_in_root:
        return first / (second + settings.epsilon).sqrt()
    return first / (second.sqrt() + settings.epsilon)
