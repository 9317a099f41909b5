"""Stochastic weight averaging of a student (Izmailov et al. 2018), as in FedBE.

After every c-th step after step s,

    w_bar <- (n w_bar + w) / (n + 1),  n <- n + 1

and the student becomes w_bar.
"""

import torch
from torch import nn

from fedstage.settings.server import WeightAverage
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
