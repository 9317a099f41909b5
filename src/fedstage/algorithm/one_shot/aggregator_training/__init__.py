"""Training of an aggregator over the cached logits of clients' models (FENS, Algorithm 2, phase 2).

The models are frozen, so their logits of each sample are computed once and a step costs next to
nothing. Each way to train is a module with the function `train`, found by the name of its settings.
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
    pixels: torch.Tensor | None = None  # normalised [n, channels, height, width], if the rule sees

    def __len__(self) -> int:
        """Return n."""
        return len(self.labels)

    def at(self, index: torch.Tensor) -> "Samples":
        """Return some of the samples."""
        pixels = None if self.pixels is None else self.pixels[index]
        return Samples(self.logits[:, index], self.labels[index], pixels)

    def of_members(self, positions: torch.Tensor) -> "Samples":
        """Return the samples as an ensemble of some of the members sees them."""
        return Samples(self.logits[positions], self.labels, self.pixels)


@dataclass(frozen=True)
class Task:
    """An aggregator to train."""

    combine: Combine
    start: Weights  # lambda_0
    samples: Mapping[int, Samples]  # by client, or the server's own under -1
    validation: Samples | None  # for early stopping
    seed: int
    members: Sequence[int] = ()  # clients, in the order of the members


@dataclass(frozen=True)
class Sampled:
    """What all participants of a round move where each has some of the members only."""

    fetched: Mapping[int, int]  # by position of a member, how many have not had its model before
    coordinates: int  # numbers that are sent, and sent back


@dataclass(frozen=True)
class Round:
    """A round, or a step of a server that trains alone."""

    number: int  # from 1
    participants: int  # how many clients took part
    loss: float | None  # mean over the participants' steps; None if the server does not learn it
    accuracy: float | None = None  # on the validation samples afterwards, in percent
    sampled: Sampled | None = None
    # Bytes up and down of the mean participant with secure aggregation, but for the aggregator.
    messages: tuple[int, int] | None = None


@dataclass(frozen=True)
class Trained:
    """An aggregator's parameters after the best round, that round's number, and all rounds.

    `kept` are its parameters after some of the rounds, of which nothing is chosen.
    """

    parameters: Weights
    best: int
    rounds: list[Round]
    kept: Mapping[int, Weights] = field(default_factory=dict)


class AggregatorTrainer(Protocol):
    """The function of a module of this package."""

    def train(self, settings: Any, task: Task) -> Trained:
        """Train lambda, until the last round or until early stopping ends it."""


def trainer(settings: AggregatorTraining) -> AggregatorTrainer:
    """Return the module of a way to train."""
    return cast(AggregatorTrainer, implementation(settings))


def alone(settings: AggregatorTraining | None) -> bool:
    """Whether the server trains without the clients."""
    return settings is not None and settings.name == "proxy"


def gradient(
    combine: Combine, parameters: Weights, samples: Samples
) -> tuple[torch.Tensor, Weights]:
    """Return the mean cross entropy of samples and its gradient by lambda."""
    moving = {name: value.detach().requires_grad_() for name, value in parameters.items()}
    loss = cross_entropy(combine(moving, samples.logits, samples.pixels), samples.labels)
    slopes = torch.autograd.grad(loss, list(moving.values()))
    return loss.detach(), dict(zip(moving, slopes, strict=True))
