"""Multinomial logistic regression."""

from collections import OrderedDict
from math import prod

from torch import nn


def logistic_regression(shape: tuple[int, int, int], classes: int) -> nn.Module:
    """Return one linear layer on the flattened input.

    Parameters
    ----------
    shape : tuple[int, int, int]
        [C, H, W] of an image.
    classes : int
        Number of logits.
    """
    return nn.Sequential(OrderedDict(flatten=nn.Flatten(), linear=nn.Linear(prod(shape), classes)))
