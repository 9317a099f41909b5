"""The last step of training a student that becomes an average of its weights (SWA, EMA)."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from fedstage.data.bags import Samples
from fedstage.settings.numerics import Numerics
from fedstage.training.batch_norm import re_estimate
from fedstage.training.passes import PLAIN


@torch.no_grad()
def take(
    model: nn.Module,
    averages: Sequence[torch.Tensor],
    images: Samples,
    info: Mapping[str, Any],
    numerics: Numerics = PLAIN,
) -> None:
    """Replace the model's parameters by the averages.

    Running statistics are not averaged but estimated on the images, as FedBE does on its unlabelled
    ones. These are the training images, augmented if training augmented them, so that the
    statistics are of the same images as for a student that keeps its last weights.
    """
    for parameter, average in zip(model.parameters(), averages, strict=True):
        parameter.copy_(average)
    re_estimate(model, images, info, numerics)
