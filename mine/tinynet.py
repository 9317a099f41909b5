import random
from math import prod
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import nn

from fedstage.settings.models import Headed


class TinyNet(Headed):
    samples: ClassVar[tuple[str, ...]] = ("images",)
    name: Literal["tinynet"]


class Own(nn.Module):
    # Draws in every way, and sets some of it.
    def __init__(self, classes):
        super().__init__()
        self.bare = nn.Parameter(torch.rand(classes))
        self.set = nn.Linear(classes, classes)
        nn.init.zeros_(self.set.weight)
        self.register_buffer("drawn", torch.tensor([random.random(), np.random.rand()]))

    def forward(self, x):
        return self.set(x) + self.bare


class Container(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def initialise(self, generator):
        nn.init.constant_(self.inner.weight, 0.5)
        self.inner.bias.normal_(generator=generator)

    def forward(self, x):
        return self.inner(x)


class Pair(nn.Module):
    def forward(self, x):
        return x, x


def network(settings, shape, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(65, classes))
