"""The forward pass and the loss, computed with the chosen numerics.

`forward` and the loss function define the mathematics; numerics change only the precision of
products and the memory format.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from fedstage.data.bags import Bags, Samples
from fedstage.settings.numerics import Numerics
from fedstage.training.images import normalise

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


def model_loss(loss: Loss, numerics: Numerics) -> ModelLoss:
    """Return the loss of a model's logits as a function of the model and its input."""

    def of_model(model: nn.Module, pixels: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return loss(forward(model, pixels, numerics), targets)

    return of_model


def arrange(model: nn.Module, numerics: Numerics) -> nn.Module:
    """Put the weights of convolutions into the memory format of the numerics, in place."""
    if numerics.memory_format == "channels_last":
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return model


# --- predictions ----------------------------------------------------------------------------------

#: Images per batch, by device: as many as fit into a CPU's caches, or as fill a GPU.
BATCH = {"cpu": 100, "cuda": 1000}
BAGS = 4  # per batch: each may be as large as thousands of images


@torch.no_grad()
def compute_logits(
    model: nn.Module, images: Samples, info: Mapping[str, Any], numerics: Numerics = PLAIN
) -> torch.Tensor:
    """Return a model's logits [n, classes] (float32, on the CPU) of images or other samples."""
    model.eval()
    parts = [forward(model, batch, numerics) for batch in normalised_batches(images, info)]
    return torch.cat(parts).float().cpu()


def normalised_batches(images: Samples, info: Mapping[str, Any]) -> Iterator[torch.Tensor]:
    """Yield samples as a model takes them, in batches of the fastest size."""
    size = BAGS if isinstance(images, Bags) else BATCH[images.device.type]
    batches: Sequence[Samples] = images.split(size)
    return (normalise(batch, info) for batch in batches)


def cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> float:
    """Return the mean cross entropy of logits [n, classes] against labels [n]."""
    return float(nn.functional.cross_entropy(logits, labels))


def class_accuracies(
    logits: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the numbers of correct predictions and of samples by class, float64 [classes]."""
    classes = logits.shape[1]
    hits = (logits.argmax(1) == labels).double()
    correct = torch.zeros(classes, dtype=torch.float64).index_add_(0, labels, hits)
    return correct, torch.bincount(labels, minlength=classes).double()
