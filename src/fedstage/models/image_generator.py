"""Networks that generate images and tell them from real ones, with their initial weights."""

from collections.abc import Mapping
from itertools import pairwise
from math import prod, sqrt
from typing import Any

import torch
from torch import Tensor, nn

# --- initial weights ------------------------------------------------------------------------------


@torch.no_grad()
def draw_parameters(model: nn.Module, generator: torch.Generator) -> None:
    """Draw weights and biases from U(-1/sqrt(fan_in), 1/sqrt(fan_in)), in the order of modules.

    The fan-in of a transposed convolution is PyTorch's: its output channels times its kernel. Norms
    have weight 1 and bias 0.
    """
    for layer in model.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
            bound = 1 / sqrt(layer.weight[0].numel())
            for parameter in layer.parameters(recurse=False):
                parameter.uniform_(-bound, bound, generator=generator)
        elif isinstance(layer, nn.BatchNorm2d):
            layer.reset_parameters()  # draws nothing


# --- the generator --------------------------------------------------------------------------------
#
# A network from a latent vector to an image, of any size, as in DENSE and Co-Boosting.
#
# A linear layer gives maps with a quarter of the image's side. They are doubled twice by repeating
# pixels, each time with a convolution, batch normalisation and LeakyReLU (0.2). Sides that are not
# multiples of 4 are cropped.

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


# --- the discriminator ----------------------------------------------------------------------------
#
# A network from an image to one number, the logarithm of the odds that the image is real.
#
# Three convolutions of stride 2 with LeakyReLU (0.2), twice as many channels each time, and a
# linear layer. It has no normalisation over a batch, so that an output depends on its image alone.

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
