"""Samples as models take them: images normalised and, in training, augmented; bags padded."""

from collections.abc import Mapping
from functools import lru_cache
from math import exp, log, sqrt
from typing import Any

import torch
from torch import Tensor

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


# --- two views of each image ----------------------------------------------------------------------
#
# Random views of images for contrastive losses (Chen et al. 2020; Khosla et al. 2020).
#
# A view is made in these steps. Crop 20 to 100 % of the image, with an aspect ratio from 3/4 to
# 4/3, and enlarge it; mirror it with probability 1/2. With probability 4/5, change brightness,
# contrast and saturation by factors from 0.6 to 1.4 and the hue by up to a tenth of a turn, in any
# order. Make it grey with probability 1/5. The values are from FAFI's released code, which draws
# them once for all images of a batch.

_SHARE, _ASPECT = (0.2, 1.0), (3 / 4, 4 / 3)
_FACTOR, _HUE = 0.4, 0.1
_JITTERED, _GREY, _MIRRORED = 0.8, 0.2, 0.5
_TRIES = 10


def view(pixels: Tensor, generator: torch.Generator) -> Tensor:
    """Return one view of all images [n, C, H, W] of pixels in [0, 1]; C is 1 or 3."""
    from torchvision.transforms.v2 import functional  # takes a second to import

    size = (pixels.shape[2], pixels.shape[3])
    top, left, height, width = crop_box(size, generator)
    seen: Tensor = functional.resized_crop(
        pixels, top, left, height, width, list(size), antialias=False
    )
    if _uniform(0, 1, generator) < _MIRRORED:
        seen = seen.flip(-1)
    if _uniform(0, 1, generator) < _JITTERED:
        sizes = [_uniform(1 - _FACTOR, 1 + _FACTOR, generator) for _ in range(3)]
        sizes.append(_uniform(-_HUE, _HUE, generator))
        changes = (
            functional.adjust_brightness,
            functional.adjust_contrast,
            functional.adjust_saturation,
            functional.adjust_hue,
        )
        for number in torch.randperm(len(changes), generator=generator).tolist():
            seen = changes[number](seen, sizes[number])
    if _uniform(0, 1, generator) < _GREY and pixels.shape[1] > 1:
        seen = functional.rgb_to_grayscale(seen, num_output_channels=3)
    return seen


def crop_box(size: tuple[int, int], generator: torch.Generator) -> tuple[int, int, int, int]:
    """Return top, left, height and width of a crop of an image; all of it if none is found."""
    for _ in range(_TRIES):
        area = size[0] * size[1] * _uniform(*_SHARE, generator)
        aspect = exp(_uniform(log(_ASPECT[0]), log(_ASPECT[1]), generator))
        height, width = round(sqrt(area / aspect)), round(sqrt(area * aspect))
        if 0 < height <= size[0] and 0 < width <= size[1]:
            top = int(torch.randint(size[0] - height + 1, (), generator=generator))
            left = int(torch.randint(size[1] - width + 1, (), generator=generator))
            return top, left, height, width
    return 0, 0, *size


def _uniform(low: float, high: float, generator: torch.Generator) -> float:
    return low + (high - low) * float(torch.rand((), generator=generator))
