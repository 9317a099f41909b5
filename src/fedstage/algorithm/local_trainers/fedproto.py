"""FedProto (Tan et al. 2022): clients exchange prototypes, the means of their features by class.

Client n keeps its own model, with features z. With the global prototypes P of the last round,

    L = CE + lambda mean |z(x) - P_y|^2        | |^2: a mean over dimensions, as released

where samples of a class without a prototype have no distance. It then sends p_{n,c}, its mean
features, and its n_c samples of class c. P_c is the mean of p_{n,c} weighted by n_c, as published.
"""

from collections.abc import Sequence

import torch
from torch import nn

from fedstage.algorithm.exchange.updates import Update
from fedstage.algorithm.local_trainers import Task, Trained
from fedstage.algorithm.local_trainers.digest import Trainer as Digest
from fedstage.models.heads import represent
from fedstage.randomness import Key
from fedstage.settings.local_training import FedProto
from fedstage.training.passes import ModelLoss
from fedstage.weights import Tensors, Weights

#: The names in a state of P [classes, width], and of how many samples each stands for [classes].
PROTOTYPES, COUNTS = "server/prototypes", "server/counts"


class Trainer(Digest[FedProto]):
    """Training from the client's own model, by L."""

    def objective(self, task: Task) -> ModelLoss | None:
        """Return L; None without prototypes, in the first round."""
        weight, prototypes = self.settings.weight, task.state.get(PROTOTYPES)
        if prototypes is None or not weight:
            return None
        known = task.state[COUNTS] > 0

        def of_model(model: nn.Module, pixels: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            seen, logits = represent(model, pixels, task.numerics)
            away = (seen - prototypes[labels]).square().mean(1) * known[labels]
            return task.loss(logits, labels) + weight * away.mean()

        return of_model

    def payload(self, trained: Trained, state: Tensors, client: int) -> Weights:
        """Return p_{n,c} [classes, width], 0 for classes without samples, and n_c [classes]."""
        seen, labels = trained.seen(), trained.labels
        classes = len(trained.end["head.classifier.bias"])
        counts = torch.bincount(labels, minlength=classes)
        sums = torch.zeros(classes, seen.shape[1]).index_add_(0, labels, seen)
        return {"prototypes": sums / counts.clamp(min=1)[:, None], "counts": counts}

    def sent_down(self, start: Tensors, state: Tensors) -> Tensors:
        """Return P."""
        return {name: state[name] for name in (PROTOTYPES, COUNTS) if name in state}

    def shared(self, state: Tensors, updates: Sequence[Update], key: tuple[Key, ...]) -> Tensors:
        """Return P of this round."""
        counts = torch.stack([update.payload["counts"] for update in updates])
        means = torch.stack([update.payload["prototypes"] for update in updates])
        sums = (counts[:, :, None] * means).sum(0)
        total = counts.sum(0)
        return {PROTOTYPES: sums / total.clamp(min=1)[:, None], COUNTS: total}
