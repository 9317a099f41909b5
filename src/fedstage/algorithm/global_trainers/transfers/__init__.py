"""Transfers: what a student learns from an ensemble on public images.

A transfer is a module with the two functions below, found by the name of its settings. Targets are
computed once, from the logits of the teacher and of its members, or from the samples' labels.
"""

from collections.abc import Sequence
from typing import Any, Protocol, cast

import torch

from fedstage.algorithm.ensemble_trainers import Members, in_order, stack, teacher_logits
from fedstage.protocol.teaching import EnsembleTeaching, Teaching
from fedstage.settings.base import implementation
from fedstage.settings.server import Server
from fedstage.settings.transfers import OneShotTransfer, Transfer
from fedstage.training.losses import scalar
from fedstage.training.passes import Loss


class TransferModule(Protocol):
    """The functions of a transfer's module."""

    def targets(self, settings: Any, teacher: torch.Tensor, members: torch.Tensor) -> torch.Tensor:
        """Return targets [n, ...], from logits of the teacher [n, C] and its members [M, n, C].

        Where the teacher is not an ensemble, `teacher` is the labels [n], and there are 0 members.
        """

    def loss(self, settings: Any, server: Server) -> Loss:
        """Return the loss of student logits [b, C] against targets [b, ...]."""


def transfer(settings: Transfer | OneShotTransfer) -> TransferModule:
    """Return the module of a transfer."""
    return cast(TransferModule, implementation(settings))


def targets_of(
    teaching: Teaching[Transfer | OneShotTransfer], teacher: torch.Tensor, members: torch.Tensor
) -> torch.Tensor:
    """Return the targets of each sample, from logits or labels as in `TransferModule.targets`."""
    return transfer(teaching.distillation).targets(teaching.distillation, teacher, members)


def loss_of(teaching: Teaching[Transfer | OneShotTransfer]) -> Loss:
    """Return the loss with which students learn these targets."""
    loss = transfer(teaching.distillation).loss(teaching.distillation, teaching.server)
    return scalar(loss, teaching.distillation, "distillation")


def targets_from(teaching: EnsembleTeaching, members: Sequence[Members]) -> torch.Tensor:
    """Return the targets of each public sample, [n, ...]."""
    ordered = in_order(members)
    teacher = teacher_logits(teaching.ensemble, ordered)
    return targets_of(teaching, teacher, stack(ordered).float())
