"""Optimisers: steps as functions over lists of tensors, equal to `torch.optim`, and learning rates.

The first use of a class of `torch.optim` imports the compiler (3 s, more than most stages need).
These steps can also be recorded as a graph: numbers that differ from step to step are in a tensor,
and all changes are made in place.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from fedstage.settings.optimisation import Client, Constant, Cosine, Cyclical, Optimiser, Step
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


# --- learning rates over steps and rounds ---------------------------------------------------------


def factor(schedule: Constant | Step | Cosine | Cyclical, step: int, steps: int) -> float:
    """Return the factor of the learning rate at `step` = 0 .. steps - 1 of a training.

    Step: factor^(milestones passed). Cosine: final + (1 - final) (1 + cos(pi step/steps)) / 2.
    Cyclical (Izmailov et al. 2018): 1 - (1 - final) q with q = 1/c, 2/c, ..., 1 over c steps.
    """
    if isinstance(schedule, Step):
        # 0.28 of 25 steps are 7, but the floating-point product is slightly more.
        passed = sum(step >= round(milestone * steps, 6) for milestone in schedule.milestones)
        return schedule.factor**passed
    if isinstance(schedule, Cosine):
        half_wave = (1 + math.cos(math.pi * step / steps)) / 2
        return schedule.final + (1 - schedule.final) * half_wave
    if isinstance(schedule, Cyclical):
        return 1 - (1 - schedule.final) * ((step % schedule.cycle + 1) / schedule.cycle)
    return 1.0


def round_factor(client: Client, round_: int) -> float:
    """Return the factor of a client's learning rate in a round, from 1.

    decay^(t - 1), with `round_cosine` = T times (1 + cos(pi min(t - 1, T)/T)) / 2.
    """
    decayed = client.round_decay ** (round_ - 1)
    if client.round_cosine is None:
        return decayed
    passed = min(round_ - 1, client.round_cosine) / client.round_cosine
    return decayed * (1 + math.cos(math.pi * passed)) / 2


# --- an optimiser of parameters that share no loop ------------------------------------------------

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
