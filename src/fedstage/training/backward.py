"""The gradients of a step: from the samples of a batch to its loss."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

#: Maps drawn samples, int64 [rows, b], to the model's input and its targets.
Batch = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
#: Sets the gradients of all parameters for drawn samples, and returns the loss.
Backward = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class NoisyBatches:
    """DP-SGD: per-sample gradients clipped to `clip`, and noise of `noise` times this length.

    `expected` is the mean number of samples of a batch.
    """

    clip: float | None
    noise: float
    expected: float
    generator: torch.Generator  #: draws the noise
