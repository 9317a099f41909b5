"""Multinomial logistic regression, or binary logistic regression with one output."""

from collections import OrderedDict
from math import prod

from torch import nn

from fedstage.models.layers import one_output
from fedstage.settings.models import LogisticRegression


def network(settings: LogisticRegression, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return a linear layer on the flattened sample: one output per class, or one for two."""
    layers: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
    layers["linear"] = nn.Linear(prod(shape), settings.outputs or classes)
    if settings.outputs == 1:
        layers["logits"] = one_output(settings, classes)
    return nn.Sequential(layers)
