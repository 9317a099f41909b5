"""Keep features near the global model's, most strongly for rare classes."""

from typing import ClassVar, Literal

import torch

from fedstage.algorithm.local_trainers import LocalTrainer
from fedstage.models.heads import represent
from fedstage.models.loading import frozen
from fedstage.settings.base import NonNegative
from fedstage.settings.local_training import LocalTraining


class Compact(LocalTraining):
    """CE + mu mean ||z - z_glob||^2 / n_y."""

    own_loss: ClassVar[bool] = True
    needs_head: ClassVar[bool] = True
    name: Literal["compact"]
    mu: NonNegative = 1.0


class Trainer(LocalTrainer):
    def objective(self, task):
        start, rarity = frozen(task.model), 1 / task.label_counts.clamp(min=1)

        def of_model(model, samples, labels):
            with torch.no_grad():
                before, _ = represent(start, samples, task.numerics)
            features, logits = represent(model, samples, task.numerics)
            moved = (features - before).square().sum(1)
            return task.loss(logits, labels) + self.settings.mu * (rarity[labels] * moved).mean()

        return of_model
