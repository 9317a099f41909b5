"""Forward passes without gradients, and scores of their logits."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from fedstage.data.bags import Bags, Samples
from fedstage.settings.numerics import Numerics
from fedstage.training.images import normalise
from fedstage.training.passes import PLAIN, forward

#: Images per batch, by device: as many as fit into a CPU's caches, or as fill a GPU.
BATCH = {"cpu": 100, "cuda": 1000}
BAGS = 4  # per batch: each may be as large as thousands of images


@torch.no_grad()
def compute_logits(
    model: nn.Module, images: Samples, info: Mapping[str, Any], numerics: Numerics = PLAIN
) -> torch.Tensor:
    """Return a model's logits [n, classes] (float32, on the CPU) of images or other samples.

    Nothing is compiled: that would take longer than the forward passes.
    """
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
