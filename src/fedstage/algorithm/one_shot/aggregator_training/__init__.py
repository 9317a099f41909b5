"""Training of an aggregator over the cached logits of clients' models (FENS, Algorithm 2, phase 2).

The models are frozen, so their logits of each sample are computed once and a step is cheap. Each
way to train is a module with the function `train`, found by the name of its settings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import torch
from torch.nn.functional import cross_entropy

from fedstage.algorithm.one_shot.aggregators import Combine
from fedstage.settings.aggregators import AggregatorTraining
from fedstage.settings.base import implementation
from fedstage.weights import Weights


@dataclass(frozen=True)
class Samples:
    """Labelled samples as an aggregator sees them."""

    logits: torch.Tensor  # [M, n, C], of the members' models
    labels: torch.Tensor  # int64 [n]
    pixels: torch.Tensor | None = None  # normalised [n, channels, height, width], if used

    def __len__(self) -> int:
        """Return n."""
        return len(self.labels)

    def at(self, index: torch.Tensor) -> "Samples":
        """Return the samples at `index`."""
        pixels = None if self.pixels is None else self.pixels[index]
        return Samples(self.logits[:, index], self.labels[index], pixels)

    def of_members(self, positions: torch.Tensor) -> "Samples":
        """Return the samples as seen by the members at `positions` only."""
        return Samples(self.logits[positions], self.labels, self.pixels)


@dataclass(frozen=True)
class Task:
    """An aggregator to train."""

    combine: Combine
    start: Weights  # lambda_0
    samples: Mapping[int, Samples]  # by client, or the server's own under -1
    validation: Samples | None  # for early stopping
    seed: int
    members: Sequence[int] = ()  # clients, in order of the members


@dataclass(frozen=True)
class Sampled:
    """What all participants of a round transfer where each has only some of the members."""

    fetched: Mapping[int, int]  # by position of a member, how many participants lacked its model
    coordinates: int  # numbers that are sent, and sent back


@dataclass(frozen=True)
class Round:
    """A round, or a step of a server that trains alone."""

    number: int  # from 1
    participants: int  # how many clients took part
    loss: float | None  # mean over the participants' steps; None if the server does not learn it
    accuracy: float | None = None  # on the validation samples afterwards, in percent
    sampled: Sampled | None = None
    # Bytes up and down of the mean participant with secure aggregation, without the aggregator.
    messages: tuple[int, int] | None = None


@dataclass(frozen=True)
class Trained:
    """An aggregator's parameters after the best round, that round's number, and all rounds.

    `kept` are its parameters after some of the rounds; they play no part in the choice.
    """

    parameters: Weights
    best: int
    rounds: list[Round]
    kept: Mapping[int, Weights] = field(default_factory=dict)


class AggregatorTrainer(Protocol):
    """The function that a module of this package defines."""

    def train(self, settings: Any, task: Task) -> Trained:
        """Train lambda until the last round or until early stopping."""


def trainer(settings: AggregatorTraining) -> AggregatorTrainer:
    """Return the module that trains as these settings define."""
    return cast(AggregatorTrainer, implementation(settings))


def alone(settings: AggregatorTraining | None) -> bool:
    """Whether the server trains without the clients."""
    return settings is not None and settings.name == "proxy"


def gradient(
    combine: Combine, parameters: Weights, samples: Samples
) -> tuple[torch.Tensor, Weights]:
    """Return the mean cross entropy of samples and its gradient with respect to lambda."""
    moving = {name: value.detach().requires_grad_() for name, value in parameters.items()}
    loss = cross_entropy(combine(moving, samples.logits, samples.pixels), samples.labels)
    slopes = torch.autograd.grad(loss, list(moving.values()))
    return loss.detach(), dict(zip(moving, slopes, strict=True))
