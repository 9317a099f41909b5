"""A step of fixed size, by the sign of the mean change."""

from typing import Literal

from fedstage.settings.aggregation import ServerStep
from fedstage.settings.base import Rate


class Signed(ServerStep):
    """w <- w + `learning_rate` sign(Delta)."""

    name: Literal["signed"]
    learning_rate: Rate = 0.01


def step(settings, weights, change, state):
    signs = {name: change[name].sign().to(w.dtype) for name, w in weights.items()}
    return {name: w + settings.learning_rate * signs[name] for name, w in weights.items()}, {}
