"""Optimiser steps as functions over lists of tensors, equal to `torch.optim`.

The first use of a class of `torch.optim` imports the compiler (3 s, more than most stages need).
These steps can also be recorded as a graph: numbers that differ from step to step are in a tensor,
and all changes are made in place.
"""

from collections.abc import Callable, Sequence

import torch
from torch import nn

from fedstage.settings.optimisation import Optimiser
from fedstage.training.devices import on_device

#: Moves the parameters along their gradients in place, by a row of `step_sizes`.
StepFunction = Callable[[torch.Tensor], None]

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # of Adam, as published


def step_sizes(
    settings: Optimiser, rates: Sequence[float], like: torch.Tensor, beta1: float = BETA1
) -> torch.Tensor:
    """Return the learning rate and 1 for each step, [steps, 2], with `like`'s type and device.

    With Adam they are eta / (1 - beta_1^t) and sqrt(1 - beta_2^t).
    """
    sizes = [(rate, 1.0) for rate in rates]
    if settings.optimiser == "adam":
        bias = ((1 - beta1**count, 1 - BETA2**count) for count in range(1, len(rates) + 1))
        sizes = [
            (rate / first, second**0.5) for rate, (first, second) in zip(rates, bias, strict=True)
        ]
    numbers = torch.tensor(sizes, dtype=torch.float64).view(len(sizes), 2)
    return on_device(numbers.to(like.dtype), like.device)


def optimiser_step(
    parameters: Sequence[nn.Parameter], settings: Optimiser, beta1: float = BETA1
) -> StepFunction:
    """Return the step function of an optimiser with fresh state; `beta1` is Adam's."""
    if settings.optimiser == "adam":
        return _adam(parameters, settings, beta1)
    return _sgd(parameters, settings)


def _sgd(parameters: Sequence[nn.Parameter], settings: Optimiser) -> StepFunction:
    """SGD: v <- momentum v + g + decay w, w <- w - eta v (Nesterov: g + momentum v for v)."""
    momenta = [torch.zeros_like(each) for each in parameters] if settings.momentum else []

    @torch.no_grad()
    def step(sizes: torch.Tensor) -> None:
        gradients = gradients_of(parameters, settings.weight_decay)
        if settings.momentum:
            torch._foreach_mul_(momenta, settings.momentum)
            torch._foreach_add_(momenta, gradients)
            if settings.nesterov:
                gradients = list(torch._foreach_add(gradients, momenta, alpha=settings.momentum))
            else:
                gradients = momenta
        _descend(parameters, gradients, sizes[0])

    return step


def _descend(
    parameters: Sequence[nn.Parameter], directions: list[torch.Tensor], rate: torch.Tensor
) -> None:
    """W <- w - eta d: on a CPU with one rounding, as if eta were a number; on a GPU in few kernels.

    On a GPU one kernel multiplies many tensors by a number, but `addcmul` takes one kernel each.
    """
    if rate.is_cuda:
        torch._foreach_sub_(list(parameters), torch._foreach_mul(directions, rate))
    else:
        torch._foreach_addcmul_(list(parameters), directions, [rate] * len(directions), value=-1)


def _adam(parameters: Sequence[nn.Parameter], settings: Optimiser, beta1: float) -> StepFunction:
    """Adam of Kingma and Ba 2015, with bias correction; weight decay is added to the gradient."""
    first, second = ([torch.zeros_like(each) for each in parameters] for _ in range(2))

    @torch.no_grad()
    def step(sizes: torch.Tensor) -> None:
        gradients = gradients_of(parameters, settings.weight_decay)
        torch._foreach_lerp_(first, gradients, 1 - beta1)
        torch._foreach_mul_(second, BETA2)
        torch._foreach_addcmul_(second, gradients, gradients, 1 - BETA2)
        scale = list(torch._foreach_sqrt(second))
        torch._foreach_div_(scale, sizes[1])
        torch._foreach_add_(scale, EPSILON)
        moved = torch._foreach_mul(first, sizes[0])
        torch._foreach_addcdiv_(list(parameters), moved, scale, value=-1)

    return step


def gradients_of(parameters: Sequence[nn.Parameter], decay: float) -> list[torch.Tensor]:
    """Return the parameters' gradients, including weight decay."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    assert len(gradients) == len(parameters), "every parameter takes part in the loss"
    if decay:
        return list(torch._foreach_add(gradients, list(parameters), alpha=decay))
    return gradients
