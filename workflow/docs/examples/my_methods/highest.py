"""The highest logit of any member, for each class."""

from typing import Literal

from fedstage.settings.aggregators import AggregationRule


class Highest(AggregationRule):
    """The highest logits."""

    name: Literal["highest"]


def parameters(settings, known, generator):
    return {}


def combine(settings, parameters, logits, pixels):
    return logits.max(0).values
