"""FedLC (Zhang et al. 2022): logits calibrated by a client's number of samples of each class.

With n_c samples of class c, a client minimises the loss of the logits

    f_c - tau n_c^(-1/4)

in place of f_c, so that rare classes keep a larger margin. A class without samples has an infinite
margin: it leaves the softmax and gets no gradient. The paper has tau = 1 and no released code;
implementations that replace 0 by a small number are equivalent.
"""

import torch
from torch import nn

from fedstage.algorithm.local_trainers import LocalTrainer, Task
from fedstage.settings.local_training import FedLc
from fedstage.training.passes import ModelLoss, forward


class Trainer(LocalTrainer[FedLc]):
    """FedAvg whose clients calibrate their logits."""

    def objective(self, task: Task) -> ModelLoss | None:
        """Return the loss of calibrated logits; None for tau = 0, which is FedAvg bit for bit."""
        if self.settings.tau == 0:
            return None
        margins = self.settings.tau * task.label_counts.float().pow(-0.25)

        def of_model(model: nn.Module, pixels: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            return task.loss(forward(model, pixels, task.numerics) - margins, labels)

        return of_model
