"""Losses of logits against the teacher's logits z, or labels of public samples.

l1       min mean | f(x; w) - z(x) | (FedKD, Gong et al. 2022), on raw logits
l2       min mean ( f(x; w) - z(x) )^2 (Guha et al. 2019)
labels   the cross entropy with the labels, and nothing from an ensemble (FedCVAE-Ens)
"""

from torch import Tensor, nn

from fedstage.settings.server import Server
from fedstage.settings.transfers import L1Transfer, L2Transfer, LabelsTransfer
from fedstage.training.passes import Loss

Plain = L1Transfer | L2Transfer | LabelsTransfer


def targets(settings: Plain, teacher: Tensor, members: Tensor) -> Tensor:
    """Return the teacher's logits, or the labels [n], given as `teacher`."""
    return teacher


def loss(settings: Plain, server: Server) -> Loss:
    """Return the mean difference over images and classes, or the mean cross entropy."""
    if isinstance(settings, LabelsTransfer):
        return nn.functional.cross_entropy
    return nn.functional.l1_loss if isinstance(settings, L1Transfer) else nn.functional.mse_loss
