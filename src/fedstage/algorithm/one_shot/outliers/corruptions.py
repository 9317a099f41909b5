"""Outliers made by destroying images ("data destruction", FedOV, Diao et al. 2023, Section 3.2).

Each image is changed in one of five ways, drawn per image. It is cropped to less than a third and
enlarged, or blurred; a third to a half of it is erased; one half is copied over another; or two
blocks are turned. Probabilities and ranges are from the released code, in which the last two ways
count double; torchvision's transforms are reimplemented. Two choices are made here: erased pixels
become 0 of the standardised image, its mean, and an erased part that is longer than the image is
cut off.
"""

import math
from collections.abc import Callable
from typing import TypeVar

import torch
from torch.nn.functional import conv2d, interpolate, pad

from fedstage.settings.one_shot_clients import Corruptions

CROP = (0.1, 0.33), (3 / 4, 4 / 3)  # area, width by height
ERASED = (0.33, 0.5), (0.3, 3.3)
SIGMA = (10.0, 100.0)  # of the blur, whose weights are nearly constant over its few pixels
LONG, SHORT = (3, 5, 7, 9), (1, 3, 5)  # sides of the blur

T = TypeVar("T")
Corrupt = Callable[[torch.Tensor, torch.Generator], torch.Tensor]


def make(settings: Corruptions, samples: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a corrupted version of each of the images [b, C, H, W]."""
    return torch.stack([_choice(WAYS, generator)(image, generator) for image in samples])


def crop(image: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a small part of an image [C, H, W], enlarged to its size."""
    top, left, height, width = _rectangle(image, *CROP, generator)
    part = image[None, :, top : top + height, left : left + width]
    return interpolate(part, image.shape[1:], mode="bilinear", align_corners=False)[0]


def blur(image: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return an image blurred along one axis more than along the other."""
    sides = [_choice(LONG, generator), _choice(SHORT, generator)]
    height, width = sides if _below(2, generator) else reversed(sides)
    sigma = _between(*SIGMA, generator)
    kernel = torch.outer(_bell(height, sigma), _bell(width, sigma)).to(image)
    padding = (width // 2, width // 2, height // 2, height // 2)
    channels = pad(image[:, None], padding, mode="replicate")
    return conv2d(channels, kernel[None, None])[:, 0]


def erase(image: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return an image with a rectangle of zeros."""
    top, left, height, width = _rectangle(image, *ERASED, generator)
    erased = image.clone()
    erased[:, top : top + height, left : left + width] = 0.0
    return erased


def cut(image: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return an image with one half copied over another, or with its halves exchanged."""
    axis = 1 + _below(2, generator)
    half = image.shape[axis] // 2
    least = (half + 1) // 2  # the least distance, in pixels, of the half from its new place
    if half < 2 or _below(3, generator) == 0:
        return image.roll(half, axis)
    apart = least + _below(half - least, generator)
    first = _below(half - apart, generator)
    start, end = (first, first + apart) if _below(2, generator) else (first + apart, first)
    changed = image.clone()
    changed.narrow(axis, end, half).copy_(image.narrow(axis, start, half))
    return changed


def turn(image: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return an image in which two adjacent square blocks are turned."""
    half = min(image.shape[1:]) // 2
    quarters, top = 1 + _below(3, generator), _below(max(half, 1), generator)
    turned = image.clone()
    for left in (0, half):
        block = image[:, top : top + half, left : left + half]
        turned[:, top : top + half, left : left + half] = block.rot90(quarters, (1, 2))
    return turned


WAYS: tuple[Corrupt, ...] = (crop, blur, erase, cut, turn, cut, turn)


def _rectangle(
    image: torch.Tensor,
    area: tuple[float, float],
    ratio: tuple[float, float],
    generator: torch.Generator,
) -> tuple[int, int, int, int]:
    """Return top, left, height and width of a part of an image, with a share of its area."""
    _, rows, columns = image.shape
    pixels = _between(*area, generator) * rows * columns
    wide = math.exp(_between(math.log(ratio[0]), math.log(ratio[1]), generator))
    height = min(max(round(math.sqrt(pixels / wide)), 1), rows)
    width = min(max(round(math.sqrt(pixels * wide)), 1), columns)
    top, left = _below(rows - height + 1, generator), _below(columns - width + 1, generator)
    return top, left, height, width


def _bell(size: int, sigma: float) -> torch.Tensor:
    """Return the weights of a Gaussian at `size` pixels, which sum to 1."""
    places = torch.arange(size, dtype=torch.float64) - (size - 1) / 2
    weights = (-((places / sigma) ** 2) / 2).exp()
    return weights / weights.sum()


def _between(low: float, high: float, generator: torch.Generator) -> float:
    return low + (high - low) * float(torch.rand((), dtype=torch.float64, generator=generator))


def _below(count: int, generator: torch.Generator) -> int:
    return int(torch.randint(count, (), generator=generator))


def _choice(values: tuple[T, ...], generator: torch.Generator) -> T:
    return values[_below(len(values), generator)]
