"""Running statistics of batch normalisation, estimated anew for weights that were averaged."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from fedstage.config import Numerics
from fedstage.engine.images import normalise
from fedstage.engine.passes import PLAIN, forward

BATCH = 500


@torch.no_grad()
def re_estimate(
    model: nn.Module, images: torch.Tensor, info: Mapping[str, Any], numerics: Numerics = PLAIN
) -> None:
    """Set the running statistics to the mean over batches, in one pass over uint8 [n, C, H, W].

    Each image counts the same: after b of n images a new batch of b' has the weight b'/(b + b').
    Batches are of nearly one size, so that the last is not small. A model without batch
    normalisation stays as it is.
    """
    norms = [part for part in model.modules() if isinstance(part, nn.BatchNorm2d)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
    model.train()
    seen = 0
    for batch in images.chunk(math.ceil(len(images) / BATCH)):
        seen += len(batch)
        for norm in norms:
            norm.momentum = len(batch) / seen
        forward(model, normalise(batch, info), numerics)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
