"""Distillation of FedKD (Gong et al. 2022): min mean | f(x; w) - z(x) | on raw logits."""

import torch
from torch import nn

from fedstage.settings.server import Server
from fedstage.settings.transfers import L1Transfer
from fedstage.training.passes import Loss


def targets(settings: object, teacher: torch.Tensor, members: torch.Tensor) -> torch.Tensor:
    """Return the teacher's logits z."""
    return teacher


def loss(settings: L1Transfer, server: Server) -> Loss:
    """Return the mean absolute difference, over images and classes."""
    return nn.functional.l1_loss
