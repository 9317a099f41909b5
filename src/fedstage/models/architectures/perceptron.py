"""Linear layers: logistic regression, and the multilayer perceptron."""

from collections import OrderedDict
from itertools import pairwise
from math import prod

from torch import nn

from fedstage.models.layers import one_output
from fedstage.settings.models import LogisticRegression, Perceptron


def network(
    settings: LogisticRegression | Perceptron, shape: tuple[int, ...], classes: int
) -> nn.Module:
    """Return the network that the settings are of."""
    if isinstance(settings, LogisticRegression):
        return logistic_regression(settings, shape, classes)
    return mlp(settings, shape, classes)


def logistic_regression(
    settings: LogisticRegression, shape: tuple[int, ...], classes: int
) -> nn.Module:
    """Return a linear layer on the flattened sample: one output per class, or one for two."""
    layers: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
    layers["linear"] = nn.Linear(prod(shape), settings.outputs or classes)
    if settings.outputs == 1:
        layers["logits"] = one_output(settings, classes)
    return nn.Sequential(layers)


def mlp(settings: Perceptron, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return linear layers on the flattened sample, with ReLU between them."""
    layers: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
    widths = (prod(shape), *settings.hidden, classes)
    for number, (inputs, outputs) in enumerate(pairwise(widths), start=1):
        if number > 1:
            layers[f"relu{number - 1}"] = nn.ReLU()
        layers[f"linear{number}"] = nn.Linear(inputs, outputs)
    return nn.Sequential(layers)
