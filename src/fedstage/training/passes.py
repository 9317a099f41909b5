"""The forward pass and the loss, computed with the chosen numerics.

`forward` and the loss function define the mathematics; numerics change only the precision of
products, the memory format, and whether the code is compiled.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from fedstage.settings.numerics import Numerics

#: Loss of logits [b, classes] against targets (labels [b], or teacher logits [b, classes]).
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
#: Loss of a model for pixels [b, C, H, W] and targets.
ModelLoss = Callable[[nn.Module, torch.Tensor, torch.Tensor], torch.Tensor]

#: The default numerics.
PLAIN = Numerics()


def forward(model: nn.Module, pixels: torch.Tensor, numerics: Numerics) -> torch.Tensor:
    """Return the logits [n, classes], float32 where the weights are, of pixels [n, C, H, W]."""
    logits: torch.Tensor = compute(model, pixels, numerics)
    return logits.float() if numerics.precision == "bf16" else logits


def compute(
    function: Callable[[torch.Tensor], Any], pixels: torch.Tensor, numerics: Numerics
) -> Any:
    """Return a function's result for pixels [n, C, H, W], with products in the chosen precision."""
    if numerics.memory_format == "channels_last":  # only for images, as `Recipe` checks
        pixels = pixels.contiguous(memory_format=torch.channels_last)
    if numerics.precision != "bf16":
        return function(pixels)
    with torch.autocast(pixels.device.type, torch.bfloat16):
        return function(pixels)


def eager_loss(loss: Loss, numerics: Numerics) -> ModelLoss:
    """Return the loss of a model as uncompiled PyTorch code."""

    def of_model(model: nn.Module, pixels: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return loss(forward(model, pixels, numerics), targets)

    return of_model


def arrange(model: nn.Module, numerics: Numerics) -> nn.Module:
    """Put the weights of convolutions into the memory format of the numerics, in place."""
    if numerics.memory_format == "channels_last":
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return model
