"""MOON (Li, He, Song 2021): a client's representation stays close to the global model's.

For a batch, z is the representation by the model in training, z_glob by the model that the round
starts from, and z_prev by the client's own model from when it last took part (section 3.3):

    L_con = -log( exp(cos(z, z_glob) / T) / (exp(cos(z, z_glob) / T) + exp(cos(z, z_prev) / T)) )
    L     = CE + mu mean L_con                                gradient only through z

The other two models are frozen and use their running statistics, as released. In its first
participation a client has no model of its own, so that z_prev = z_glob: L_con is then log 2 for any
z, and the client minimises CE. (The released code takes the client's initial model.) The round
state holds each client's last trained model, which is not sent.
"""

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn.functional import cosine_similarity, log_softmax

from fedstage.algorithm.exchange.round_state import next_models
from fedstage.algorithm.exchange.updates import Update, part
from fedstage.algorithm.local_trainers import LocalTrainer, Task
from fedstage.models.heads import represent
from fedstage.models.loading import frozen
from fedstage.settings.local_training import Moon
from fedstage.training.passes import ModelLoss
from fedstage.weights import Tensors


class Trainer(LocalTrainer[Moon]):
    """FedAvg whose clients minimise L and keep their last model."""

    def objective(self, task: Task) -> ModelLoss | None:
        """Return CE + mu mean L_con; None for mu = 0 or a first participation, which is FedAvg."""
        previous = part(task.state, f"client/{task.client}/")
        if self.settings.mu == 0 or not previous:
            return None
        start, last = frozen(task.model), frozen(task.model)
        last.load_state_dict(previous)

        def of_model(model: nn.Module, pixels: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                of_start, _ = represent(start, pixels, task.numerics)
                of_last, _ = represent(last, pixels, task.numerics)
            seen, logits = represent(model, pixels, task.numerics)
            contrast = contrastive_loss(seen, of_start, of_last, self.settings.temperature)
            return task.loss(logits, targets) + self.settings.mu * contrast

        return of_model

    def next_state(self, state: Tensors, updates: Sequence[Update], clients: int) -> Tensors:
        """Return the last trained models of all clients."""
        return next_models(state, updates)


def contrastive_loss(
    seen: torch.Tensor, start: torch.Tensor, last: torch.Tensor, temperature: float
) -> torch.Tensor:
    """Return the mean L_con of representations [n, width] of three models."""
    near = torch.stack([cosine_similarity(seen, other) for other in (start, last)], dim=1)
    return -log_softmax(near / temperature, dim=1)[:, 0].mean()
