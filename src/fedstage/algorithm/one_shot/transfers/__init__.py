"""Transfers: what a student learns from a one-shot ensemble on public images.

A transfer is a module of the two functions below, found by the name of its settings. Targets are
computed once, from what the aggregator and its members say about each image.
"""

from importlib import import_module
from typing import Any, Protocol, cast

import torch

from fedstage.settings.one_shot import Transfer
from fedstage.settings.optimisation import Server
from fedstage.training.passes import Loss


class TransferModule(Protocol):
    """The functions that a transfer's module has."""

    def targets(self, settings: Any, teacher: torch.Tensor, members: torch.Tensor) -> torch.Tensor:
        """Return a row of targets an image.

        Parameters
        ----------
        teacher : torch.Tensor
            [n, C]: what the aggregator says.
        members : torch.Tensor
            [M, n, C]: what each client's model says.
        """

    def loss(self, settings: Any, server: Server) -> Loss:
        """Return the loss of student logits [b, C] against targets [b, ...]."""


def transfer(settings: Transfer) -> TransferModule:
    """Return the module of a transfer."""
    return cast(
        TransferModule, import_module(f"fedstage.algorithm.one_shot.transfers.{settings.name}")
    )
