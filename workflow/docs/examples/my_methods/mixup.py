"""Mixup (Zhang et al. 2018): clients learn from mixed pairs of samples."""

from typing import ClassVar, Literal

import torch

from fedstage.algorithm.local_trainers import LocalTrainer
from fedstage.settings.local_training import LocalTraining
from fedstage.training.passes import forward


class Mixup(LocalTraining):
    """The loss of samples mixed in a random share, against both labels."""

    own_loss: ClassVar[bool] = True
    name: Literal["mixup"]


class Trainer(LocalTrainer):
    def objective(self, task):
        def of_model(model, samples, labels):
            share = float(torch.rand(1, generator=task.generator))
            others = torch.randperm(len(labels), generator=task.generator)
            mixed = share * samples + (1 - share) * samples[others]
            logits = forward(model, mixed, task.numerics)
            own, other = task.loss(logits, labels), task.loss(logits, labels[others])
            return share * own + (1 - share) * other

        return of_model
