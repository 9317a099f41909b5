"""The focal loss (Lin et al. 2017, Eq. 5): samples that are told well already count less.

The mean over the batch of w_y (1 - p_y)^gamma (-log p_y), with p the softmax of the logits and w_y
the weight of the label's class. It is not divided by the weights, as it is not in FLamby's baseline
for Fed-ISIC2019.
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
        If there is not a weight for each class.
    """
    gamma, weights = settings.gamma, _on_device(settings.class_weights, classes, device)

    def of(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return focal(logits, labels, gamma, weights)

    return of


def focal(
    logits: torch.Tensor, labels: torch.Tensor, gamma: float, weights: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the focal loss of logits [b, C] against labels [b], with weights [C] if any.

    Without weights, and with gamma = 0, it is the cross entropy.
    """
    costs = nn.functional.cross_entropy(logits, labels, reduction="none")
    # 1 - p_y; at 0, where numbers round to it, the power has an infinite slope for gamma < 1.
    missed = (-torch.expm1(-costs)).clamp(min=torch.finfo(costs.dtype).tiny)
    terms = missed**gamma * costs
    return (terms if weights is None else weights[labels] * terms).mean()


def _on_device(
    weights: tuple[float, ...] | None, classes: int, device: torch.device
) -> torch.Tensor | None:
    if weights is None:
        return None
    if len(weights) != classes:
        raise FedstageError(
            f"client.loss = focal: {len(weights)} class_weights: must be one for each class, and "
            f"the data has {classes}"
        )
    # Waits for the device, once: trainings on other streams will read them, too.
    return torch.tensor(weights, dtype=torch.float32, device=device)
