"""Averages of a student's weights over the steps of its training, which the student becomes.

Stochastic weight averaging (Izmailov et al. 2018), as in FedBE: after every c-th step after step s,

    w_bar <- (n w_bar + w) / (n + 1),  n <- n + 1

The moving average (EMA in BKD's comparison):

    w_bar <- decay w_bar + (1 - decay) w        w_bar = w as the distillation starts

It is updated after each step, after each epoch over the public samples, or once when the round's
distillation ends; the paper does not state when. An epoch cut short by the end of training counts.
"""

import torch
from torch import nn

from fedstage.settings.server import MovingAverage, WeightAverage
from fedstage.training.loop import AfterStep


def weight_average(
    model: nn.Module, settings: WeightAverage
) -> tuple[AfterStep, list[torch.Tensor]]:
    """Return the function to call after each step, and the averages that it keeps.

    The function never ends the training. The averages are float64 tensors in the order of the
    model's parameters; zero before the first update.
    """
    parameters = list(model.parameters())
    averages = [torch.zeros_like(parameter, dtype=torch.float64) for parameter in parameters]
    count = 0

    @torch.no_grad()
    def after_step(step: int) -> bool:
        nonlocal count
        if step > settings.start and (step - settings.start) % settings.every == 0:
            count += 1
            for average, parameter in zip(averages, parameters, strict=True):
                average += (parameter.double() - average) / count
        return False

    return after_step, averages


def moving_average(
    model: nn.Module, settings: MovingAverage, epoch: int, steps: int
) -> tuple[AfterStep, list[torch.Tensor]]:
    """Return the function to call after each step, and the averages that it keeps.

    The function never ends the training. The averages are float64 tensors in the order of the
    model's parameters.

    Parameters
    ----------
    epoch, steps : int
        Numbers of steps of an epoch and of the training.
    """
    parameters = list(model.parameters())
    averages = [parameter.detach().double().clone() for parameter in parameters]
    every = {"step": 1, "epoch": epoch, "round": steps}[settings.every]

    @torch.no_grad()
    def after_step(step: int) -> bool:
        if step % every == 0 or step == steps:
            for average, parameter in zip(averages, parameters, strict=True):
                average.lerp_(parameter.double(), 1 - settings.decay)
        return False

    return after_step, averages
