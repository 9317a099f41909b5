"""Generators that the server trains in turn with the student that learns from them.

A generator is a module with the two functions below, found by the name of its settings.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from torch import Tensor

from fedstage.settings.base import implementation
from fedstage.settings.generators import RoundGenerator

#: The distance [b] of a student's logits from a teacher's, both [b, classes].
Distance = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Made:
    """A generated batch, and the models' logits of it.

    Attributes
    ----------
    latent, pixels : Tensor
        z [b, latent] and the images [b, C, H, W], as models take them.
    labels : Tensor
        int64 [b].
    student : Tensor
        Logits [b, classes].
    members : Tensor
        Logits [m, b, classes] of the clients whose turn it is.
    shares : Tensor
        The weights of these clients, [m, b].
    clients : int
        The number of all clients that teach.
    """

    latent: Tensor
    pixels: Tensor
    labels: Tensor
    student: Tensor
    members: Tensor
    shares: Tensor
    clients: int


def fused(members: Tensor, shares: Tensor) -> Tensor:
    """Return the weighted sum [b, classes] of logits [m, b, classes], by shares [m, b]."""
    return (shares[:, :, None] * members).sum(0)


class GeneratorModule(Protocol):
    """The functions of a generator's module."""

    def turns(self, settings: Any, clients: int) -> Sequence[Sequence[int]]:
        """Return, for each step of the generator on a batch, the clients whose models it sees."""

    def loss(self, settings: Any, made: Made, distance: Distance) -> Tensor:
        """Return what a step of the generator minimises."""


def generator_module(settings: RoundGenerator) -> GeneratorModule:
    """Return the module of a generator."""
    return cast(GeneratorModule, implementation(settings))
