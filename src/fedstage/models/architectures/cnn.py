"""Convolutional networks: a plain one, a small one in the form of LeNet-5, and that of Fed-ET."""

from collections import OrderedDict
from itertools import pairwise

from torch import nn

from fedstage.models.heads import POOL
from fedstage.models.layers import convolution, normalise
from fedstage.settings.models import Cnn, CnnFedEt, CnnSmall


def network(settings: Cnn | CnnSmall | CnnFedEt, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return the network that the settings are of."""
    if isinstance(settings, Cnn):
        return plain(settings, shape, classes)
    if isinstance(settings, CnnSmall):
        return small(settings, shape, classes)
    return of_fed_et(settings, shape, classes)


def plain(settings: Cnn, shape: tuple[int, ...], classes: int) -> nn.Module:
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


def small(settings: CnnSmall, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return two 3x3 convolutions, each with 2x2 max-pooling, and two linear layers.

    Images have `shape` [C, H, W], H and W at least 4.
    """
    channels, height, width = shape
    first, second, norm = settings.width, 2 * settings.width, settings.norm
    return nn.Sequential(
        OrderedDict(
            conv1=convolution(channels, first, norm),
            norm1=normalise(norm, first),
            relu1=nn.ReLU(),
            pool1=nn.MaxPool2d(2),
            conv2=convolution(first, second, norm),
            norm2=normalise(norm, second),
            relu2=nn.ReLU(),
            pool2=nn.MaxPool2d(2),
            flatten=nn.Flatten(),
            linear1=nn.Linear(second * (height // 4) * (width // 4), settings.hidden),
            relu3=nn.ReLU(),
            linear2=nn.Linear(settings.hidden, classes),
        )
    )


KERNEL, UNITS = 5, (120, 100, 84, 50)


def of_fed_et(settings: CnnFedEt, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return two 5x5 convolutions, each with 2x2 max-pooling, and five linear layers.

    Images have `shape` [C, H, W], H and W at least 16. The linear layers have 120, 100, 84 and 50
    units, and one for each class. Kernels and channels are not in the paper: these are as in
    McMahan et al. 2017 for CIFAR-10, without padding.
    """
    channels, height, width = shape
    pooled = [((side - KERNEL + 1) // 2 - KERNEL + 1) // 2 for side in (height, width)]
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    for number, (inputs, outputs) in enumerate(pairwise((channels, *settings.channels)), 1):
        layers[f"conv{number}"] = nn.Conv2d(inputs, outputs, KERNEL)
        layers[f"relu{number}"] = nn.ReLU()
        layers[f"pool{number}"] = nn.MaxPool2d(2)
    layers["flatten"] = nn.Flatten()
    sizes = (settings.channels[1] * pooled[0] * pooled[1], *UNITS)
    for number, (inputs, outputs) in enumerate(pairwise(sizes), 1):
        layers[f"linear{number}"] = nn.Linear(inputs, outputs)
        layers[f"relu_of_linear{number}"] = nn.ReLU()
    layers["linear5"] = nn.Linear(UNITS[-1], classes)
    return nn.Sequential(layers)
