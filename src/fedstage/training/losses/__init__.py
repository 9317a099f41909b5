"""Losses: what a client's training makes small.

A loss is a module with the function `loss`, found by the name of its settings. What is averaged
over the batch is a number a sample, so that the mean over all of a client's samples is that of its
batches, each weighted by its samples.
"""

from functools import cache
from importlib import import_module
from typing import Any, Protocol, cast

import torch

from fedstage.settings.optimisation import ClientLoss
from fedstage.training.passes import Loss


class LossModule(Protocol):
    """The function that a loss's module has."""

    def loss(self, settings: Any, classes: int, device: torch.device) -> Loss:
        """Return the loss as `client_loss` does."""


@cache
def client_loss(settings: ClientLoss, classes: int, device: torch.device) -> Loss:
    """Return the loss of logits [b, classes] against labels [b], the mean over the batch.

    Equal settings have one function, for compiled code is kept by the function that it is made of.
    What it reads beside its arguments is on the device before the first step.

    Raises
    ------
    FedstageError
        If the settings do not fit the number of classes.
    """
    module = import_module(f"fedstage.training.losses.{settings.name}")
    return cast(LossModule, module).loss(settings, classes, device)
