"""Images on their way into a model: normalised, and augmented while training."""

from collections.abc import Mapping
from typing import Any

import torch

PADDING = 4  # of the random crop, as customary for 32x32 images


def normalise(images: torch.Tensor, info: Mapping[str, Any]) -> torch.Tensor:
    """Scale uint8 images [n, C, H, W] to [0, 1] and standardise each channel.

    `info` holds `mean` and `std` of the clients' training images; public images take the same.
    """
    shape = (1, -1, 1, 1)
    mean = torch.tensor(info["mean"], device=images.device).view(shape)
    std = torch.tensor(info["std"], device=images.device).view(shape)
    return (images.float() / 255 - mean) / std


def augment(images: torch.Tensor, kind: str, generator: torch.Generator) -> torch.Tensor:
    """Flip images at random, and shift them (a random crop of the zero-padded image).

    Parameters
    ----------
    images : torch.Tensor
        Raw pixels [n, C, H, W], so that the padding is black as in the papers' pipelines.
    kind : str
        ``none``, ``flip`` or ``crop_flip``.
    generator : torch.Generator
        On the CPU, so that every device draws the same.
    """
    if kind == "none":
        return images
    flips = torch.rand(len(images), generator=generator) < 0.5
    images = torch.where(flips.to(images.device)[:, None, None, None], images.flip(-1), images)
    return _random_crop(images, generator) if kind == "crop_flip" else images


def _random_crop(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    count, _, height, width = images.shape
    offsets = torch.randint(0, 2 * PADDING + 1, (2, count), generator=generator).to(images.device)
    padded = torch.nn.functional.pad(images, (PADDING,) * 4)
    rows = offsets[0][:, None] + torch.arange(height, device=images.device)
    columns = offsets[1][:, None] + torch.arange(width, device=images.device)
    index = torch.arange(count, device=images.device)[:, None, None]
    cropped = padded.permute(0, 2, 3, 1)[index, rows[:, :, None], columns[:, None, :]]
    return cropped.permute(0, 3, 1, 2)
