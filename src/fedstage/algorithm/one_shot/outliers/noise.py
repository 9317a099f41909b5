"""Outliers that are noise: standard normal numbers, which is what standardised samples vary by."""

import torch

from fedstage.settings.unknown import Noise


def make(settings: Noise, samples: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return noise in the shape of the samples."""
    drawn = torch.randn(samples.shape, generator=generator)
    return drawn.to(device=samples.device, dtype=samples.dtype)
