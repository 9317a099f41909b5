"""Cross entropy with smoothed labels."""

from functools import partial
from typing import Literal

from torch.nn.functional import cross_entropy

from fedstage.settings.base import Fraction
from fedstage.settings.optimisation import LossOfLabels


class Smoothed(LossOfLabels):
    """Cross entropy with labels smoothed by `smoothing`."""

    name: Literal["smoothed"]
    smoothing: Fraction = 0.1


def loss(settings, classes, device):
    return partial(cross_entropy, label_smoothing=settings.smoothing)
