"""A network from a latent vector to an image, of any size, as in DENSE and Co-Boosting.

A linear layer gives maps with a quarter of the image's side. They are doubled twice by repeating
pixels, each time with a convolution, batch normalisation and LeakyReLU (0.2). Sides that are not
multiples of 4 are cropped.
"""

from collections.abc import Mapping
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from fedstage.models.drawing import draw_parameters

SLOPE = 0.2


class Twice(nn.Module):
    """Repeat each pixel in both directions.

    Not by torch's upsampling, whose derivative is not deterministic on a GPU.
    """

    def forward(self, maps: Tensor) -> Tensor:
        """Map [n, C, H, W] to [n, C, 2 H, 2 W]."""
        count, channels, height, width = maps.shape
        cells = maps[:, :, :, None, :, None].expand(-1, -1, -1, 2, -1, 2)
        return cells.reshape(count, channels, 2 * height, 2 * width)


class ImageGenerator(nn.Module):
    """Maps z to pixels in [0, 1]."""

    def __init__(self, shape: tuple[int, ...], latent: int, width: int) -> None:
        super().__init__()
        self.shape = shape
        self.cells = (2 * width, -(-shape[1] // 4), -(-shape[2] // 4))
        self.first = nn.Linear(latent, prod(self.cells))
        self.layers = nn.Sequential(
            nn.BatchNorm2d(2 * width),
            Twice(),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1, bias=False),
            nn.BatchNorm2d(2 * width),
            nn.LeakyReLU(SLOPE),
            Twice(),
            nn.Conv2d(2 * width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.LeakyReLU(SLOPE),
            nn.Conv2d(width, shape[0], 3, padding=1),
            nn.Sigmoid(),
        )

    def forward(self, latent: Tensor) -> Tensor:
        """Map z [n, latent] to pixels [n, C, H, W]."""
        maps: Tensor = self.layers(self.first(latent).view(-1, *self.cells))
        return maps[:, :, : self.shape[1], : self.shape[2]]


def new_image_generator(
    shape: tuple[int, ...], latent: int, width: int, generator: torch.Generator
) -> ImageGenerator:
    """Return a network with random weights; the global generator stays unchanged."""
    with torch.random.fork_rng(devices=[]):
        model = ImageGenerator(shape, latent, width)
    draw_parameters(model, generator)
    return model


def standardised(pixels: Tensor, info: Mapping[str, Any]) -> Tensor:
    """Return pixels in [0, 1] as models take them, each channel standardised."""
    mean, std = (pixels.new_tensor(info[key]).view(1, -1, 1, 1) for key in ("mean", "std"))
    return (pixels - mean) / std
