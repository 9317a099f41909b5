"""The forward pass and the loss, as numerics say that they are computed.

The mathematics is the same for all choices, and stands in `forward` and in the loss function; what
differs is the precision of products, the order of numbers in memory, and who writes the code.
"""

from collections.abc import Callable

import torch
from torch import nn

from fedstage.settings.numerics import Numerics

#: Loss of logits [b, classes] against targets (labels [b], or teacher logits [b, classes]).
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
#: Loss of a model for pixels [b, C, H, W] and targets.
ModelLoss = Callable[[nn.Module, torch.Tensor, torch.Tensor], torch.Tensor]

#: What is computed where nothing else is said.
PLAIN = Numerics()


def forward(model: nn.Module, pixels: torch.Tensor, numerics: Numerics) -> torch.Tensor:
    """Return the logits [n, classes], float32 where the weights are, of pixels [n, C, H, W]."""
    if numerics.memory_format == "channels_last":  # only for images, as `Line` checks
        pixels = pixels.contiguous(memory_format=torch.channels_last)
    if numerics.precision != "bf16":
        logits: torch.Tensor = model(pixels)
        return logits
    with torch.autocast(pixels.device.type, torch.bfloat16):
        logits = model(pixels)
    return logits.float()


def model_loss(loss: Loss, numerics: Numerics, batch_size: int) -> ModelLoss:
    """Return the loss of a model as a function of the model, pixels and targets.

    Compiled code is for one shape, and compiling takes longer than most epochs: so only full
    batches, of `batch_size`, are compiled. Others, such as the last of an epoch, are computed
    without; which it is depends on the batch alone, and so do the bytes.
    """
    if not numerics.compile:
        return eager_loss(loss, numerics)
    from fedstage.training.compiled import compiled_loss

    eager, compiled = eager_loss(loss, numerics), compiled_loss(loss, numerics)

    def by_size(model: nn.Module, pixels: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return (compiled if len(pixels) == batch_size else eager)(model, pixels, targets)

    return by_size


def eager_loss(loss: Loss, numerics: Numerics) -> ModelLoss:
    """Return the loss of a model as PyTorch computes it, an operation after the other."""

    def of(model: nn.Module, pixels: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return loss(forward(model, pixels, numerics), targets)

    return of


def arrange(model: nn.Module, numerics: Numerics) -> nn.Module:
    """Put the weights of convolutions into the order that numerics name, in place."""
    if numerics.memory_format == "contiguous":
        return model
    arranged: nn.Module = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return arranged
