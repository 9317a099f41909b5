"""Optimiser steps as functions over lists of tensors, equal to those of `torch.optim`.

They are written out because the first use of a class of `torch.optim` imports the compiler (3 s,
more than most stages compute), and because a step without host code can be captured in a graph.
"""

from collections.abc import Callable, Sequence

import torch
from torch import nn

from fedstage.config import Optimiser

#: Moves the parameters along their gradients by a learning rate, in place.
StepFunction = Callable[[float], None]

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # of Adam, as published


def optimiser_step(parameters: Sequence[nn.Parameter], settings: Optimiser) -> StepFunction:
    """Return the step function of an optimiser with fresh state."""
    if settings.optimiser == "adam":
        return _adam(parameters, settings)
    return _sgd(parameters, settings)


def _sgd(parameters: Sequence[nn.Parameter], settings: Optimiser) -> StepFunction:
    """SGD: v <- momentum v + g + decay w, w <- w - eta v (Nesterov: g + momentum v for v)."""
    momenta: list[torch.Tensor] = []

    @torch.no_grad()
    def step(rate: float) -> None:
        gradients = gradients_of(parameters, settings.weight_decay)
        if settings.momentum:
            if momenta:
                torch._foreach_mul_(momenta, settings.momentum)
                torch._foreach_add_(momenta, gradients)
            else:
                momenta.extend(gradient.clone() for gradient in gradients)
            if settings.nesterov:
                gradients = list(torch._foreach_add(gradients, momenta, alpha=settings.momentum))
            else:
                gradients = momenta
        torch._foreach_add_(list(parameters), gradients, alpha=-rate)

    return step


def _adam(parameters: Sequence[nn.Parameter], settings: Optimiser) -> StepFunction:
    """Adam of Kingma and Ba 2015, with bias correction; weight decay joins the gradient."""
    first = [torch.zeros_like(parameter) for parameter in parameters]
    second = [torch.zeros_like(parameter) for parameter in parameters]
    count = 0

    @torch.no_grad()
    def step(rate: float) -> None:
        nonlocal count
        count += 1
        gradients = gradients_of(parameters, settings.weight_decay)
        torch._foreach_lerp_(first, gradients, 1 - BETA1)
        torch._foreach_mul_(second, BETA2)
        torch._foreach_addcmul_(second, gradients, gradients, 1 - BETA2)
        scale = list(torch._foreach_sqrt(second))
        torch._foreach_div_(scale, (1 - BETA2**count) ** 0.5)
        torch._foreach_add_(scale, EPSILON)
        torch._foreach_addcdiv_(list(parameters), first, scale, -rate / (1 - BETA1**count))

    return step


def gradients_of(parameters: Sequence[nn.Parameter], decay: float) -> list[torch.Tensor]:
    """Return the parameters' gradients, with the weight decay that joins them."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    assert len(gradients) == len(parameters), "every parameter takes part in the loss"
    if decay:
        return list(torch._foreach_add(gradients, list(parameters), alpha=decay))
    return gradients
