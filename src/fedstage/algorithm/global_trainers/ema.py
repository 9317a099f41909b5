"""The moving average of a student's weights, which the student becomes (EMA in BKD's comparison).

    w_bar <- decay w_bar + (1 - decay) w        w_bar = w as the distillation starts

The average is updated after each step, after each epoch over the public samples, or once when the
round's distillation ends; the paper does not state when. An epoch cut short by the end of training
counts.
"""

import torch
from torch import nn

from fedstage.settings.server import MovingAverage
from fedstage.training.loop import AfterStep


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
