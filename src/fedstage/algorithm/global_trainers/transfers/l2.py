"""Distillation of Guha et al. (2019): min mean ( f(x; w) - z(x) )^2 on scores.

Scores are logits or, by choice, probabilities.
"""

from torch import Tensor
from torch.nn.functional import mse_loss

from fedstage.settings.server import Server
from fedstage.settings.transfers import L2Transfer
from fedstage.training.passes import Loss


def targets(settings: L2Transfer, teacher: Tensor, members: Tensor) -> Tensor:
    """Return the teacher's scores."""
    return teacher if settings.scores == "logits" else teacher.softmax(1)


def loss(settings: L2Transfer, server: Server) -> Loss:
    """Return the mean squared difference, over images and classes."""
    if settings.scores == "logits":
        return mse_loss

    def of_batch(logits: Tensor, probabilities: Tensor) -> Tensor:
        return mse_loss(logits.softmax(1), probabilities)

    return of_batch
