"""Which weights of a student's training it keeps: averages over steps, or the best ones.

Stochastic weight averaging (Izmailov et al. 2018), as in FedBE: after every c-th step after step s,

    w_bar <- (n w_bar + w) / (n + 1),  n <- n + 1

The moving average (EMA in BKD's comparison):

    w_bar <- decay w_bar + (1 - decay) w        w_bar = w as the distillation starts

It is updated after each step, after each epoch over the public samples, or once when the round's
distillation ends; the paper does not state when. An epoch cut short by the end of training counts.

Early stopping keeps the best on the server's validation set, as FedDF does; as in its released
code, the weights that the student starts from are not a candidate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from fedstage.data.bags import Samples
from fedstage.models.loading import state_of
from fedstage.settings.numerics import Numerics
from fedstage.settings.server import EarlyStopping, MovingAverage, WeightAverage
from fedstage.training.loop import AfterStep
from fedstage.training.passes import PLAIN, compute_logits
from fedstage.weights import Weights


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


# --- early stopping -------------------------------------------------------------------------------


@dataclass
class Best:
    """The best weights so far, on the CPU, their step, and how many images they get right."""

    right: int = -1
    step: int = 0
    weights: Weights = field(default_factory=dict)


def early_stopping(
    model: nn.Module,
    settings: EarlyStopping,
    steps: int,
    validation: tuple[Samples, torch.Tensor],
    info: Mapping[str, Any],
    numerics: Numerics = PLAIN,
) -> tuple[AfterStep, Best]:
    """Return the function to call after each step, and the best weights that it has found.

    The function ends the training `patience` steps after the best; a tie is no improvement. Step
    `steps`, the last possible one, is always evaluated. `validation` holds images and labels [n].
    """
    images, labels = validation
    best = Best()

    def after_step(step: int) -> bool:
        if step % settings.every and step < steps:
            return False
        logits = compute_logits(model, images, info, numerics)
        right = int((logits.argmax(1) == labels.cpu()).sum())
        model.train()
        if right > best.right:
            best.right, best.step, best.weights = right, step, state_of(model)
        return step - best.step >= settings.patience

    return after_step, best
