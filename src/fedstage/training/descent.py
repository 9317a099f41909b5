"""Steps that lower a loss through some parameters only, even if it depends on other models."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from fedstage.settings.optimisation import Optimiser
from fedstage.training.optimisers import BETA1, optimiser_step, step_sizes

#: Takes a step that lowers a loss; steps are numbered from 0.
Descend = Callable[[Tensor, int], None]


def descent(
    parameters: Sequence[nn.Parameter],
    how: Optimiser,
    rates: Sequence[float],
    *,
    beta1: float = BETA1,
    clipped: Sequence[nn.Parameter] | None = None,
) -> Descend:
    """Return the steps of an optimiser with fresh state; other models keep their gradients.

    Parameters
    ----------
    parameters
        The parameters that the steps change.
    how
        The optimiser, and the norm to which gradients are clipped.
    rates
        The learning rate of each step.
    beta1
        Adam's beta1.
    clipped
        The parameters whose gradients are clipped together, by default all.
    """
    move = optimiser_step(parameters, how, beta1)
    sizes = step_sizes(how, rates, parameters[0], beta1)

    def descend(loss: Tensor, step: int) -> None:
        gradients = torch.autograd.grad(loss, parameters)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        if how.clip_norm is not None:
            nn.utils.clip_grad_norm_(parameters if clipped is None else clipped, how.clip_norm)
        move(sizes[step])
        for parameter in parameters:
            parameter.grad = None

    return descend


def adam_descent(
    parameters: Sequence[nn.Parameter],
    rate: float,
    steps: int,
    *,
    beta1: float = BETA1,
    clip_norm: float | None = None,
    clipped: Sequence[nn.Parameter] | None = None,
) -> Descend:
    """Return `descent` with `steps` steps of Adam at a constant rate."""
    adam = Optimiser(optimiser="adam", learning_rate=rate, batch_size=1, clip_norm=clip_norm)
    return descent(parameters, adam, [rate] * steps, beta1=beta1, clipped=clipped)
