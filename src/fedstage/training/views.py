"""Random views of images for contrastive losses (Chen et al. 2020; Khosla et al. 2020).

A view is made in these steps. Crop 20 to 100 % of the image, with an aspect ratio from 3/4 to 4/3,
and enlarge it; mirror it with probability 1/2. With probability 4/5, change brightness, contrast
and saturation by factors from 0.6 to 1.4 and the hue by up to a tenth of a turn, in any order. Make
it grey with probability 1/5. The values are from FAFI's released code, which draws them once for
all images of a batch.
"""

from math import exp, log, sqrt

import torch
from torch import Tensor

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
