"""The focal loss (Lin et al. 2017, Eq. 5), which gives well-classified samples less weight.

The mean over the batch of w_y (1 - p_y)^gamma (-log p_y), with p the softmax of the logits and w_y
the weight of the label's class; not divided by the weights, as in FLamby's Fed-ISIC2019 baseline.
"""

import torch
from torch import nn

from fedstage.errors import FedstageError
from fedstage.settings.optimisation import Focal
from fedstage.training.passes import Loss


def loss(settings: Focal, classes: int, device: torch.device) -> Loss:
    """Return the loss with its weights on the device.

    Raises
    ------
    FedstageError
        If there is not one weight for each class.
    """
    gamma, weights = settings.gamma, None
    if settings.class_weights is not None:
        count = len(settings.class_weights)
        if count != classes:
            raise FedstageError(
                f"client.loss = focal: {count} class_weights: must be one for each class, and the "
                f"data has {classes}"
            )
        # A blocking copy, made once: trainings on other streams read the weights, too.
        weights = torch.tensor(settings.class_weights, dtype=torch.float32, device=device)

    def of_batch(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return focal(logits, labels, gamma, weights)

    return of_batch


def focal(
    logits: torch.Tensor, labels: torch.Tensor, gamma: float, weights: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the focal loss of logits [b, C] against labels [b], optionally with weights [C].

    With gamma = 0 and without weights it is the cross entropy.
    """
    costs = nn.functional.cross_entropy(logits, labels, reduction="none")
    # 1 - p_y; at 0, where numbers round to it, the power has an infinite slope for gamma < 1.
    missed = (-torch.expm1(-costs)).clamp(min=torch.finfo(costs.dtype).tiny)
    terms = missed**gamma * costs
    return (terms if weights is None else weights[labels] * terms).mean()
