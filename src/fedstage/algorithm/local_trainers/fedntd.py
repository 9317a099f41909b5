"""FedNTD (Lee et al. 2022): a client keeps the global model's predictions for the wrong classes.

For a sample with label y, p and q are softmaxes at temperature tau over the classes c != y only: p
of the model in training, q of the global model that the round starts from (section 4).

    L_ntd = KL( q, p )                              gradient only through p
    L     = CE + beta tau^2 mean L_ntd

The factor tau^2 is in the released code (`criterion.py` of `algorithms/fedntd`), whose beta and
tau are 1 (`config/fedntd.json`), as in the paper. The global model is frozen and uses its running
statistics; the released models have none.
"""

import torch
from torch import nn

from fedstage.algorithm.local_trainers import LocalTrainer, Task
from fedstage.errors import FedstageError
from fedstage.models.loading import frozen
from fedstage.settings.local_training import FedNtd
from fedstage.training.losses import mean_divergence
from fedstage.training.passes import ModelLoss, forward

#: The softmax over the wrong classes of two is 1, so nothing would be distilled.
_FEWEST = 3


class Trainer(LocalTrainer[FedNtd]):
    """FedAvg whose clients minimise L."""

    def objective(self, task: Task) -> ModelLoss | None:
        """Return CE + beta tau^2 mean L_ntd; None for beta = 0, which is FedAvg bit for bit."""
        settings = self.settings
        if settings.beta == 0:
            return None
        if task.classes < _FEWEST:
            raise FedstageError(
                f"local = fedntd: needs at least {_FEWEST} classes, and the data have "
                f"{task.classes}"
            )
        start, weight = frozen(task.model), settings.beta * settings.temperature**2

        def of_model(model: nn.Module, pixels: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                before = forward(start, pixels, task.numerics)
            logits = forward(model, pixels, task.numerics)
            q, p = (not_true(part, labels) / settings.temperature for part in (before, logits))
            return task.loss(logits, labels) + weight * mean_divergence(q, p)

        return of_model


def not_true(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the logits [b, classes - 1] of all classes but the label's, in their order."""
    places = torch.arange(logits.shape[1] - 1, device=logits.device)
    return logits.gather(1, places + (places >= labels[:, None]))
