"""Distillation of FedDF: KL of the student's probabilities from the teacher's.

`server` has the temperature, its square and sharpening; FENS leaves them open.
"""

from fedstage.algorithm.global_trainers.distillation import distillation_loss
from fedstage.algorithm.global_trainers.transfers.l1 import targets
from fedstage.settings.server import Server
from fedstage.settings.transfers import KlTransfer
from fedstage.training.passes import Loss

__all__ = ["loss", "targets"]


def loss(settings: KlTransfer, server: Server) -> Loss:
    """Return tau^2 mean_x KL( sigma_tau(teacher), sigma_tau(student) )."""
    return distillation_loss(server)
