"""Outliers that are standard normal noise, with the variance of standardised samples."""

import torch

from fedstage.settings.one_shot_clients import Noise


def make(settings: Noise, samples: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return noise in the shape of the samples."""
    drawn = torch.randn(samples.shape, generator=generator)
    return drawn.to(device=samples.device, dtype=samples.dtype)
