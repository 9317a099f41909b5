"""FedGKT on clients (He et al. 2020): learning from labels and the server's logits.

Each client keeps a small model: an extractor E and a classifier. The server's large model S takes
features as input: see `global_trainers.features`. In round t a client starts from its own model, or
from the initial one when it first takes part, and minimises

    l_c = CE(z_c, y) + alpha KL_T(z_s -> z_c)        z_c: its logits, z_s = S_{t-1}(E(x))
    KL_T(q -> p) = T^2 KL( softmax(q / T), softmax(p / T) )

z_s is computed once for all of the client's samples, before the first step, without augmentation
and with the extractor as it is at the start of the round. In round 1 the server has learnt nothing,
and a client minimises CE. In the paper all clients take part in each round and receive z_s of the
previous round. Here, as in Fed-ET (Appendix B), z_s is computed when it is needed, so that only
some clients need to take part.
"""

import torch
from torch import nn

from fedstage.algorithm.local_trainers import Task
from fedstage.algorithm.local_trainers.digest import Trainer as Digest
from fedstage.settings.local_training import Gkt
from fedstage.training.losses import mean_divergence
from fedstage.training.passes import ModelLoss, forward


class Trainer(Digest[Gkt]):
    """Training from the client's own model, by l_c."""

    def objective(self, task: Task) -> ModelLoss | None:
        """Return l_c for targets with the server's logits, CE for labels alone."""
        settings = self.settings

        def of_model(model: nn.Module, pixels: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            logits = forward(model, pixels, task.numerics)
            if targets.dim() == 1:
                return task.loss(logits, targets)
            labels, received = taken_apart(targets)
            return task.loss(logits, labels) + settings.alpha * transfer(received, logits, settings)

        return of_model


def transfer(received: torch.Tensor, logits: torch.Tensor, settings: Gkt) -> torch.Tensor:
    """Return the mean KL_T(received -> logits), both [b, classes]; `logits` have gradients."""
    t = settings.temperature
    return t**2 * mean_divergence(received / t, logits / t)


def put_together(labels: torch.Tensor, received: torch.Tensor) -> torch.Tensor:
    """Return targets [n, 1 + classes] of labels [n] and logits [n, classes]; labels are exact."""
    return torch.cat([labels[:, None].to(received), received], dim=1)


def taken_apart(targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the labels [n] and logits [n, classes] of targets [n, 1 + classes]."""
    return targets[:, 0].long(), targets[:, 1:]
