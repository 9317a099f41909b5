"""The mean of changes clipped to the length `norm` (Sun et al. 2019)."""

from typing import Literal

from fedstage.algorithm.aggregation.averages import average_weights
from fedstage.settings.aggregation import ModelRule
from fedstage.settings.base import Rate


class Clipped(ModelRule):
    """The average of changes clipped to `norm`."""

    name: Literal["clipped"]
    norm: Rate = 1.0


def combine(settings, models, shares, start):
    return average_weights([clip(model, start, settings.norm) for model in models], shares)


def clip(model, start, norm):
    changes = {name: model[name] - value for name, value in start.items()}
    length = sum(float(change.square().sum()) for change in changes.values()) ** 0.5
    factor = min(1.0, norm / max(length, 1e-12))
    return model | {name: start[name] + factor * change for name, change in changes.items()}
