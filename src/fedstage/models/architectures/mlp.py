"""Layers of neurons: a multilayer perceptron."""

from collections import OrderedDict
from itertools import pairwise
from math import prod

from torch import nn

from fedstage.settings.models import Perceptron


def network(settings: Perceptron, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return linear layers on the flattened sample, with ReLU between them."""
    layers: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
    widths = (prod(shape), *settings.hidden, classes)
    for number, (inputs, outputs) in enumerate(pairwise(widths), start=1):
        if number > 1:
            layers[f"relu{number - 1}"] = nn.ReLU()
        layers[f"linear{number}"] = nn.Linear(inputs, outputs)
    return nn.Sequential(layers)
