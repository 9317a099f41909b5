"""Distillation as FedDF has it: KL of the student's probabilities from the teacher's.

Temperature, its square and sharpening are those of `server`; FENS does not say which it takes.
"""

import torch

from fedstage.algorithm.global_trainers.distillation import distillation_loss
from fedstage.settings.one_shot import KlTransfer
from fedstage.settings.optimisation import Server
from fedstage.training.passes import Loss


def targets(settings: KlTransfer, teacher: torch.Tensor, members: torch.Tensor) -> torch.Tensor:
    """Return the teacher's logits."""
    return teacher


def loss(settings: KlTransfer, server: Server) -> Loss:
    """Return tau^2 mean_x KL( sigma_tau(teacher), sigma_tau(student) )."""
    return distillation_loss(server)
