"""Two linear layers, with a factor for each hidden unit that starts near 1."""

from math import prod
from typing import Literal

import torch
from torch import nn

from fedstage.settings.base import Positive
from fedstage.settings.models import Headed


class TwoLayers(Headed):
    """Two linear layers; as a `Headed` one the model can have a `head`."""

    name: Literal["two_layers"]
    hidden: Positive = 8


class Scale(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.factor = nn.Parameter(0.9 + 0.2 * torch.rand(width))

    def forward(self, hidden):
        return self.factor * hidden


def network(settings, shape, classes):
    layers = nn.Linear(prod(shape), settings.hidden), Scale(settings.hidden), nn.ReLU()
    return nn.Sequential(nn.Flatten(), *layers, nn.Linear(settings.hidden, classes))
