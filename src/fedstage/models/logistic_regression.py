"""Multinomial logistic regression, and binary with one output."""

from collections import OrderedDict
from math import prod

from torch import nn

from fedstage.models.one_output import one_output
from fedstage.settings.models import LogisticRegression


def logistic_regression(
    settings: LogisticRegression, shape: tuple[int, ...], classes: int
) -> nn.Module:
    """Return one linear layer on the flattened input.

    Parameters
    ----------
    settings : LogisticRegression
        Whether there is an output a class, or one for two classes.
    shape : tuple[int, ...]
        Of a sample: [C, H, W] of an image, [F] of features.
    classes : int
        Number of logits.

    Raises
    ------
    FedstageError
        If one output is to tell more than two classes.
    """
    layers: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
    layers["linear"] = nn.Linear(prod(shape), settings.outputs or classes)
    if settings.outputs == 1:
        layers["logits"] = one_output(settings, classes)
    return nn.Sequential(layers)
