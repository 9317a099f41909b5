"""A plain convolutional network: convolutions with pooling, and one linear layer."""

from collections import OrderedDict
from itertools import pairwise

from torch import nn

from fedstage.models.heads import POOL
from fedstage.models.layers import convolution, normalise
from fedstage.settings.models import Cnn


def network(settings: Cnn, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return a 3x3 convolution with 2x2 max-pooling for each of `channels`, and a linear layer.

    Images have `shape` [C, H, W], H and W at least 8; each pooling halves them, rounded down.
    """
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    for number, (before, width) in enumerate(pairwise((shape[0], *settings.channels)), 1):
        layers[f"conv{number}"] = convolution(before, width, settings.norm)
        layers[f"norm{number}"] = normalise(settings.norm, width)
        layers[f"relu{number}"] = nn.ReLU()
        last = number == len(settings.channels)
        layers[POOL if last else f"pool{number}"] = nn.MaxPool2d(2)
    layers["flatten"] = nn.Flatten()
    height, width = (side >> len(settings.channels) for side in shape[1:])
    layers["linear"] = nn.Linear(settings.channels[-1] * height * width, classes)
    return nn.Sequential(layers)
