"""Losses of a client's training: one module each, with ``loss(settings, classes, device)``.

A loss is a mean over the batch of one number for each sample, so a client's mean loss is the mean
over its batches, weighted by their sizes.
"""

from collections.abc import Callable
from typing import ParamSpec

import torch
from torch import nn

from fedstage.errors import FedstageError
from fedstage.settings.base import Choice, called, implementation, is_plugin
from fedstage.settings.optimisation import ClientLoss
from fedstage.training.passes import Loss


def client_loss(settings: ClientLoss, classes: int, device: torch.device) -> Loss:
    """Return the loss of logits [b, classes] against labels [b]; its constants are on the device.

    Raises
    ------
    FedstageError
        If the settings do not fit the number of classes.
    """
    loss: Loss = implementation(settings).loss(settings, classes, device)
    return scalar(loss, settings, "client.loss")


# --- plugins' losses ------------------------------------------------------------------------------

P = ParamSpec("P")


def scalar(loss: Callable[P, torch.Tensor], part: Choice, key: str) -> Callable[P, torch.Tensor]:
    """Return the loss of a `part` of the settings; a plugin's loss has its result checked.

    Raises
    ------
    FedstageError
        When a plugin's loss returns anything but a tensor of one number without dimensions.
    """
    return _checked(loss, called(part, key)) if is_plugin(part) else loss


def _checked(loss: Callable[P, torch.Tensor], named: str) -> Callable[P, torch.Tensor]:
    def checked(*args: P.args, **kwargs: P.kwargs) -> torch.Tensor:
        value = loss(*args, **kwargs)
        if not isinstance(value, torch.Tensor) or value.dim():
            told = list(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
            raise FedstageError(
                f"{named}: the loss of a batch is {told}, must be a tensor of one number, the mean"
            )
        return value

    return checked


# --- divergences of predictions, given as logits --------------------------------------------------


def mean_divergence(teacher: torch.Tensor, student: torch.Tensor) -> torch.Tensor:
    """Return the mean over a batch of KL( sigma(teacher), sigma(student) ), both [b, classes]."""
    return nn.functional.kl_div(
        student.log_softmax(1), teacher.log_softmax(1), reduction="batchmean", log_target=True
    )


def each_divergence(teacher: torch.Tensor, student: torch.Tensor) -> torch.Tensor:
    """Return KL( sigma(teacher), sigma(student) ) of each sample, [b], of logits [b, classes]."""
    return nn.functional.kl_div(
        student.log_softmax(1), teacher.log_softmax(1), reduction="none", log_target=True
    ).sum(1)
