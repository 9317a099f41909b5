"""Losses of a client's training: one module each, with ``loss(settings, classes, device)``.

A loss is a mean over the batch of one number for each sample, so a client's mean loss is the mean
over its batches, weighted by their sizes.
"""

from functools import cache

import torch

from fedstage.settings.base import implementation
from fedstage.settings.optimisation import ClientLoss
from fedstage.training.passes import Loss
from fedstage.training.scalars import scalar


@cache
def client_loss(settings: ClientLoss, classes: int, device: torch.device) -> Loss:
    """Return the loss of logits [b, classes] against labels [b]; its constants are on the device.

    Equal settings give the same function, because compiled code is cached by function.

    Raises
    ------
    FedstageError
        If the settings do not fit the number of classes.
    """
    loss: Loss = implementation(settings).loss(settings, classes, device)
    return scalar(loss, settings, "client.loss")
