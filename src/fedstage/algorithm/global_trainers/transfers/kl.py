"""The default loss of students (FedDF, Lin et al. 2020; FedSDD, FedEED): KL(teacher || student).

`server` has the temperature, its square and sharpening; FENS leaves them open.
"""

import torch

from fedstage.algorithm.global_trainers.distillation import distillation_loss
from fedstage.settings.server import Server
from fedstage.settings.transfers import KlTransfer
from fedstage.training.passes import Loss


def targets(settings: KlTransfer, teacher: torch.Tensor, members: torch.Tensor) -> torch.Tensor:
    """Return the teacher's logits."""
    return teacher


def loss(settings: KlTransfer, server: Server) -> Loss:
    """Return tau^2 mean_x KL( sigma_tau(teacher), sigma_tau(student) )."""
    return distillation_loss(server)
