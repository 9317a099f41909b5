"""Running statistics of batch normalisation, estimated anew for a model that was put together."""

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
    """Set a model's running statistics to those of `images`, in place; its parameters stay.

    Each layer takes the mean over batches of the batch's mean and (unbiased) variance, while the
    layers before it normalise by the batch, as in training (Izmailov et al. 2018, section 3.2).

    Parameters
    ----------
    images : torch.Tensor
        uint8 [n, C, H, W], on the model's device; cut into batches of 500 or a little less, which
        differ by one image at most and so count alike.
    """
    layers = [layer for layer in model.modules() if isinstance(layer, nn.BatchNorm2d)]
    if not layers:
        return
    assert isinstance(images, torch.Tensor), "models of bags have no such layers"
    momenta = [layer.momentum for layer in layers]
    for layer in layers:
        layer.reset_running_stats()
    model.train()
    for count, batch in enumerate(images.tensor_split(-(-len(images) // BATCH)), start=1):
        for layer in layers:
            layer.momentum = 1 / count  # the running mean is then that of all batches so far
        forward(model, normalise(batch, info), numerics)
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum
