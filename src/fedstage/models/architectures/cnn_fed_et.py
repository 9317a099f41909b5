"""The small convolutional network of Fed-ET (its Appendix C)."""

from collections import OrderedDict
from itertools import pairwise

from torch import nn

from fedstage.settings.models import CnnFedEt

KERNEL, UNITS = 5, (120, 100, 84, 50)


def network(settings: CnnFedEt, shape: tuple[int, ...], classes: int) -> nn.Module:
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
