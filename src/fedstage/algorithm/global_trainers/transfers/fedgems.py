"""Distillation of FedGEMS (Cheng et al. 2021): labels, and logits of misclassified samples.

Targets are [n, 2 + C]: y, v and logits z. With v = 0 a sample is learnt by its label, with v = 1 by

    L(x) = epsilon CE( y, f(x; w) ) + (1 - epsilon) KL( sigma(z), sigma(f(x; w)) )

`global_trainers.selection` decides which samples have v = 1.
"""

import torch
from torch import nn

from fedstage.errors import FedstageError
from fedstage.settings.server import Server
from fedstage.settings.transfers import FedGemsTransfer
from fedstage.training.losses import each_divergence
from fedstage.training.passes import Loss


def targets(
    settings: FedGemsTransfer, teacher: torch.Tensor, members: torch.Tensor
) -> torch.Tensor:
    """Raise FedstageError: targets depend on labels and the student, not on an ensemble alone."""
    raise FedstageError("distillation = 'fedgems': only where clients learn from the server")


def loss(settings: FedGemsTransfer, server: Server) -> Loss:
    """Return the mean L."""

    def fedgems(student: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        labels, taught, teacher = target[:, 0].long(), target[:, 1], target[:, 2:]
        hard = nn.functional.cross_entropy(student, labels, reduction="none")
        soft = each_divergence(teacher, student)
        rest = (1 - settings.epsilon) * taught
        return ((1 - rest) * hard + rest * soft).mean()

    return fedgems
