"""A conditional variational autoencoder of images, of any size.

Four convolutions of stride 2 and their mirror images, with batch normalisation, as in the released
code of FedCVAE, but without biases before norms, which subtract them. Images are padded to
multiples of 16 pixels, and decoded images are cropped.
"""

from itertools import pairwise
from math import prod

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot, pad

from fedstage.models.image_generator import draw_parameters

_STRIDES = 16  # four times 2
_HIDDEN = 500
_EPSILON = 1e-3  # of the decoder's norms, as released


class Encoder(nn.Module):
    """Maps pixels to mean and log variance of z; it does not see labels."""

    def __init__(self, shape: tuple[int, ...], latent: int, width: int) -> None:
        super().__init__()
        self.cells = cells(shape)
        channels = (shape[0], width, width, 2 * width, 2 * width)
        blocks: list[nn.Module] = []
        for before, after in pairwise(channels):
            blocks += [
                nn.Conv2d(before, after, 4, 2, 1, bias=False),
                nn.BatchNorm2d(after),
                nn.ReLU(),
            ]
        inputs = 2 * width * prod(self.cells)
        head = [nn.Flatten(), nn.Linear(inputs, _HIDDEN), nn.Linear(_HIDDEN, 2 * latent)]
        self.layers = nn.Sequential(*blocks, *head)

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Map pixels [n, C, H, W] in [0, 1] to mean and log variance, each [n, latent]."""
        height, width = (_STRIDES * count for count in self.cells)
        below, beside = height - pixels.shape[2], width - pixels.shape[3]
        mean, log_variance = self.layers(pad(pixels, (0, beside, 0, below))).chunk(2, dim=1)
        return mean, log_variance


class Decoder(nn.Module):
    """Maps z and the label to the logits of pixels."""

    def __init__(self, shape: tuple[int, ...], classes: int, latent: int, width: int) -> None:
        super().__init__()
        self.shape, self.classes, self.width = shape, classes, width
        self.cells = cells(shape)
        self.first = nn.Linear(latent + classes, 2 * width * prod(self.cells))
        channels = (2 * width, 2 * width, width, width)
        blocks: list[nn.Module] = [nn.ReLU()]
        for before, after in pairwise(channels):
            blocks += [
                nn.ConvTranspose2d(before, after, 4, 2, 1, bias=False),
                nn.BatchNorm2d(after, eps=_EPSILON),
                nn.ReLU(),
            ]
        self.layers = nn.Sequential(*blocks, nn.ConvTranspose2d(width, shape[0], 4, 2, 1))

    def forward(self, latent: Tensor, labels: Tensor) -> Tensor:
        """Map z [n, latent] and labels [n] to logits [n, C, H, W]."""
        joined = torch.cat([latent, one_hot(labels, self.classes).to(latent.dtype)], dim=1)
        maps = self.layers(self.first(joined).view(len(latent), 2 * self.width, *self.cells))
        _, height, width = self.shape
        cropped: Tensor = maps[:, :, :height, :width]
        return cropped


class Autoencoder(nn.Module):
    """Encoder and decoder, with z = mean + deviation * noise between them."""

    def __init__(self, shape: tuple[int, ...], classes: int, latent: int, width: int) -> None:
        super().__init__()
        self.encoder = Encoder(shape, latent, width)
        self.decoder = Decoder(shape, classes, latent, width)

    def forward(
        self, pixels: Tensor, labels: Tensor, noise: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return logits of pixels, mean and log variance, from pixels, labels and normal noise."""
        mean, log_variance = self.encoder(pixels)
        latent = mean + (log_variance / 2).exp() * noise
        return self.decoder(latent, labels), mean, log_variance


def cells(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return height and width of the smallest maps of images [C, H, W]."""
    _, height, width = shape
    return -(-height // _STRIDES), -(-width // _STRIDES)


def new_autoencoder(
    shape: tuple[int, ...], classes: int, latent: int, width: int, generator: torch.Generator
) -> Autoencoder:
    """Return an autoencoder with random weights; the global generator stays unchanged."""
    with torch.random.fork_rng(devices=[]):
        model = Autoencoder(shape, classes, latent, width)
    draw_parameters(model, generator)
    return model


def new_decoder(shape: tuple[int, ...], classes: int, latent: int, width: int) -> Decoder:
    """Return a decoder whose weights are still to be loaded."""
    with torch.random.fork_rng(devices=[]):
        return Decoder(shape, classes, latent, width)
