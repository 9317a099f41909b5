"""FedLC (Zhang et al. 2022): logits that are calibrated by what a client has of each class.

With the client's n_c samples of class c, the loss is that of the logits

    f_c - tau n_c^(-1/4)

in place of f_c, so that rare classes keep a larger margin. A class without samples has an infinite
margin: it leaves the softmax and gets no gradient, as the equation says. Implementations that put a
small number in place of 0 come to the same. The paper has no released code, and says tau = 1.
"""

import torch
from torch import nn

from fedstage.algorithm.local_trainers import Task
from fedstage.algorithm.local_trainers.fedavg import (
    gradient_term,
    next_state,
    payload,
    prepare,
    scales,
    sent_down,
)
from fedstage.settings.local_training import FedLc
from fedstage.training.passes import ModelLoss, forward

__all__ = ["gradient_term", "next_state", "objective", "payload", "prepare", "scales", "sent_down"]


def objective(settings: FedLc, task: Task) -> ModelLoss | None:
    """Return the loss of calibrated logits; None for tau = 0, which is FedAvg bit for bit."""
    if settings.tau == 0:
        return None
    margins = settings.tau * task.label_counts.float().pow(-0.25)

    def of_model(model: nn.Module, pixels: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return task.loss(forward(model, pixels, task.numerics) - margins, labels)

    return of_model
