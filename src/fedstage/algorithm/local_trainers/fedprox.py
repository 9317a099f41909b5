"""FedProx (Li et al. 2020): each client minimises CE + (mu/2) ||w - w_start||^2.

The term is over parameters, not over buffers, and is added to the gradient before momentum.
"""

from collections.abc import Sequence

import torch
from torch import nn

from fedstage.algorithm.local_trainers import LocalTrainer
from fedstage.settings.local_training import FedProx
from fedstage.training.loop import GradientTerm
from fedstage.weights import Tensors


class Trainer(LocalTrainer[FedProx]):
    """FedAvg with the proximal term's gradient."""

    def gradient_term(self, start: Tensors, state: Tensors, client: int) -> GradientTerm | None:
        """Return g <- g + mu (w - w_start)."""
        return proximal(start, self.settings.mu)


def proximal(start: Tensors, mu: float) -> GradientTerm | None:
    """Return g <- g + mu (w - w_start); None for mu = 0, which is FedAvg bit for bit."""
    if mu == 0:
        return None
    anchors = list(start.values())

    @torch.no_grad()
    def add(parameters: Sequence[nn.Parameter]) -> None:
        for parameter, anchor in zip(parameters, anchors, strict=True):
            assert parameter.grad is not None
            parameter.grad.add_(parameter - anchor, alpha=mu)

    return add
