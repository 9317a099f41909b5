"""Running statistics of batch normalisation, re-estimated for an averaged or fused model."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from fedstage.data.bags import Samples
from fedstage.settings.numerics import Numerics
from fedstage.training.images import normalise
from fedstage.training.passes import PLAIN, forward

BATCH = 500


@torch.no_grad()
def re_estimate(
    model: nn.Module, images: Samples, info: Mapping[str, Any], numerics: Numerics = PLAIN
) -> None:
    """Re-estimate a model's running statistics on images, in place; parameters stay unchanged.

    Each layer averages the means and (unbiased) variances of the batches, while the layers before
    it normalise by the batch, as in training (Izmailov et al. 2018, section 3.2). Batches have 500
    images or slightly fewer, in sizes that differ by at most one, so that all count alike.
    """
    layers = [layer for layer in model.modules() if isinstance(layer, nn.BatchNorm2d)]
    if not layers:
        return
    assert isinstance(images, torch.Tensor), "models of bags have no batch normalisation"
    momenta = [layer.momentum for layer in layers]
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # the plain mean over all batches
    model.train()
    for batch in images.tensor_split(-(-len(images) // BATCH)):
        forward(model, normalise(batch, info), numerics)
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum
