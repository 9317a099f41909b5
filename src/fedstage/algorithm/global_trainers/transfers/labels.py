"""A student that learns the labels of public samples and nothing from an ensemble (FedCVAE-Ens)."""

import torch
from torch import nn

from fedstage.settings.server import Server
from fedstage.settings.transfers import LabelsTransfer
from fedstage.training.passes import Loss


def targets(settings: object, teacher: torch.Tensor, members: torch.Tensor) -> torch.Tensor:
    """Return the labels [n], given as `teacher`."""
    return teacher


def loss(settings: LabelsTransfer, server: Server) -> Loss:
    """Return the mean cross entropy."""
    return nn.functional.cross_entropy
