"""Samples as models take them: images normalised and, in training, augmented; bags padded."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import torch

from fedstage.data.bags import Bags, Samples

PADDING = 4  # of the random crop, as customary for 32x32 images
_CROP = 2  # the last rows of `draw`, which are offsets of a crop


def normalise(images: Samples, info: Mapping[str, Any]) -> torch.Tensor:
    """Scale uint8 images [n, C, H, W] to [0, 1] and standardise each channel.

    `info` holds `mean` and `std` of the clients' training images, which public images use too.
    Bags are padded; other types than uint8 are not images and stay as they are.
    """
    if isinstance(images, Bags):
        return images.padded()
    if images.dtype != torch.uint8:
        return images
    mean, std = (_by_channel(tuple(info[key]), images.device) for key in ("mean", "std"))
    return (images / 255).sub_(mean).div_(std)


def unit_of(samples: Samples, info: Mapping[str, Any]) -> torch.Tensor:
    """Return the size of a change by 1 after `normalise`: [1, C, 1, 1] for images (black to white).

    For samples other than images it is 1.
    """
    if isinstance(samples, Bags) or samples.dtype != torch.uint8:
        return torch.ones(())
    return 1 / _by_channel(tuple(info["std"]), samples.device)


@lru_cache(maxsize=16)
def _by_channel(values: tuple[float, ...], device: torch.device) -> torch.Tensor:
    """Return a constant [1, C, 1, 1], cached because copying from the host makes a GPU wait."""
    return torch.tensor(values, device=device).view(1, -1, 1, 1)


def draw(kind: str, count: int, generator: torch.Generator) -> torch.Tensor:
    """Draw the augmentation of `count` images: int64 [rows, count].

    ``none`` has no rows; ``flip`` has 1, whether to flip; ``crop`` has 2, the offsets down and to
    the right; ``crop_flip`` has 3, both. The generator is on the CPU, so that every device gets the
    same numbers.
    """
    drawn = [torch.empty(0, count, dtype=torch.int64)]
    if kind in ("flip", "crop_flip"):
        drawn.append((torch.rand(count, generator=generator) < 0.5).long()[None])
    if kind in ("crop", "crop_flip"):
        drawn.append(torch.randint(0, 2 * PADDING + 1, (2, count), generator=generator))
    return torch.cat(drawn)


def augment(images: Samples, drawn: torch.Tensor) -> Samples:
    """Flip and shift images by `drawn` [rows, n], the result of `draw` on their device.

    Images are raw pixels [n, C, H, W], so the crop's padding is black, as in the papers' pipelines.
    """
    if not len(drawn):
        return images
    assert isinstance(images, torch.Tensor), "checked by Recipe: only images are augmented"
    if len(drawn) != _CROP:
        images = torch.where(drawn[0].bool()[:, None, None, None], images.flip(-1), images)
    return _crop(images, drawn[-_CROP:]) if len(drawn) >= _CROP else images


def _crop(images: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    count, _, height, width = images.shape
    padded = torch.nn.functional.pad(images, (PADDING,) * 4)
    rows = offsets[0][:, None] + torch.arange(height, device=images.device)
    columns = offsets[1][:, None] + torch.arange(width, device=images.device)
    index = torch.arange(count, device=images.device)[:, None, None]
    cropped = padded.permute(0, 2, 3, 1)[index, rows[:, :, None], columns[:, None, :]]
    return cropped.permute(0, 3, 1, 2)
