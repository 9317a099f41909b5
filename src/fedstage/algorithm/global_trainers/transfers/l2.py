"""Distillation of Guha et al. (2019): min mean ( f(x; w) - z(x) )^2 on logits."""

from torch import Tensor
from torch.nn.functional import mse_loss

from fedstage.settings.server import Server
from fedstage.settings.transfers import L2Transfer
from fedstage.training.passes import Loss


def targets(settings: L2Transfer, teacher: Tensor, members: Tensor) -> Tensor:
    """Return the teacher's logits."""
    return teacher


def loss(settings: L2Transfer, server: Server) -> Loss:
    """Return the mean squared difference, over images and classes."""
    return mse_loss
