"""What a server generates images with: clients' models, a student, and a method."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fedstage.settings.numerics import Numerics
from fedstage.training.passes import forward


@dataclass(frozen=True)
class Made:
    """A generated batch as the models see it.

    Attributes
    ----------
    teacher, student : Tensor
        Logits [b, classes].
    labels : Tensor
        int64 [b].
    statistics : Tensor
        [m], for each client the distance of batch statistics from the running ones; empty if
        unused.
    """

    teacher: Tensor
    student: Tensor
    labels: Tensor
    statistics: Tensor


@dataclass(frozen=True)
class Method:
    """What distinguishes a method from others.

    Attributes
    ----------
    loss : callable
        L_G of a generated batch.
    watches : bool
        Whether the loss reads the statistics.
    perturbed : callable, optional
        Changes normalised images, given the teacher and a generator, before they teach.
    moved : callable, optional
        Returns weights [m] after one batch of the pool, from the weights before, logits [m, b,
        classes], labels and the epoch, counted from 0.
    """

    loss: Callable[[Made], Tensor]
    watches: bool = False
    perturbed: Callable[[Callable[[Tensor], Tensor], Tensor, torch.Generator], Tensor] | None = None
    moved: Callable[[Tensor, Tensor, Tensor, int], Tensor] | None = None


@dataclass(frozen=True)
class World:
    """What stays the same over all epochs: clients' frozen models, and how to compute."""

    teachers: Sequence[nn.Module]
    student: nn.Module
    info: Mapping[str, Any]
    numerics: Numerics

    def logits(self, pixels: Tensor) -> Tensor:
        """Return the logits [m, b, classes] of all clients' models on normalised pixels."""
        return torch.stack([forward(teacher, pixels, self.numerics) for teacher in self.teachers])


def combined(weights: Tensor, logits: Tensor) -> Tensor:
    """Return z [b, classes] = sum_i w_i z_i of weights [m] and logits [m, b, classes]."""
    return torch.einsum("m,mbc->bc", weights, logits)
