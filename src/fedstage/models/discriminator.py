"""A network from an image to one number, the logarithm of the odds that the image is real.

Three convolutions of stride 2 with LeakyReLU (0.2), twice as many channels each time, and a linear
layer. It has no normalisation over a batch, so that an output depends on its image alone.
"""

from itertools import pairwise
from math import prod

import torch
from torch import Tensor, nn

from fedstage.models.drawing import draw_parameters
from fedstage.models.image_generator import SLOPE

_STRIDES = 8  # three times 2


class Discriminator(nn.Module):
    """Maps standardised images of any size to log D(x) / (1 - D(x))."""

    def __init__(self, shape: tuple[int, ...], width: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before, after in pairwise((shape[0], width, 2 * width, 4 * width)):
            layers += [nn.Conv2d(before, after, 3, 2, 1), nn.LeakyReLU(SLOPE)]
        cells = prod(-(-side // _STRIDES) for side in shape[1:])
        self.layers = nn.Sequential(*layers, nn.Flatten(), nn.Linear(4 * width * cells, 1))

    def forward(self, pixels: Tensor) -> Tensor:
        """Map pixels [n, C, H, W] to log odds [n]."""
        odds: Tensor = self.layers(pixels)
        return odds.squeeze(1)


def new_discriminator(
    shape: tuple[int, ...], width: int, generator: torch.Generator
) -> Discriminator:
    """Return a network with random weights; the global generator stays unchanged."""
    with torch.random.fork_rng(devices=[]):
        model = Discriminator(shape, width)
    draw_parameters(model, generator)
    return model
