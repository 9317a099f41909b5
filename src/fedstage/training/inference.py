"""Forward passes without gradients, and what is measured on them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from fedstage.data.bags import Bags, Samples
from fedstage.settings.numerics import Numerics
from fedstage.training.images import normalise
from fedstage.training.passes import PLAIN, forward

#: Images at a time, by device: on a CPU what fits into its caches, on a GPU what fills it.
BATCH = {"cpu": 100, "cuda": 1000}
BAGS = 4  # at a time: each may be as large as thousands of images


@torch.no_grad()
def compute_logits(
    model: nn.Module, images: Samples, info: Mapping[str, Any], numerics: Numerics = PLAIN
) -> torch.Tensor:
    """Return the logits [n, classes] (float32, on the CPU) of uint8 images [n, C, H, W].

    Or of samples of another kind.

    Nothing is compiled: a model says what it has to say in less time than that takes.
    """
    model.eval()
    parts = [forward(model, batch, numerics) for batch in normalised_batches(images, info)]
    return torch.cat(parts).float().cpu()


def normalised_batches(images: Samples, info: Mapping[str, Any]) -> Iterator[torch.Tensor]:
    """Yield samples as a model takes them, so many at a time as are computed fastest."""
    size = BAGS if isinstance(images, Bags) else BATCH[images.device.type]
    batches: Sequence[Samples] = images.split(size)
    return (normalise(batch, info) for batch in batches)


def cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> float:
    """Return the mean cross entropy of logits [n, classes] against labels [n]."""
    return float(nn.functional.cross_entropy(logits, labels))


def class_accuracies(
    logits: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Count right answers by class.

    Returns
    -------
    right, samples : torch.Tensor
        float64 [classes].
    """
    classes = logits.shape[1]
    hits = (logits.argmax(1) == labels).double()
    right = torch.zeros(classes, dtype=torch.float64).index_add_(0, labels, hits)
    return right, torch.bincount(labels, minlength=classes).double()
