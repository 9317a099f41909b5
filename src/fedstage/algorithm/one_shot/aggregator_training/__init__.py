"""Training of an aggregator over the cached logits of clients' models (FENS, Algorithm 2, phase 2).

The models are frozen, so their logits of each sample are computed once and a step is cheap. Each
way to train is a module with the function `train`, found by the name of its settings.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import torch
from torch.nn.functional import cross_entropy

from fedstage.algorithm.one_shot.aggregators import Combine
from fedstage.errors import FedstageError
from fedstage.settings.aggregators import AggregatorTraining
from fedstage.settings.base import implementation
from fedstage.settings.privacy import ExamplePrivacy
from fedstage.training.batches import NoisyBatches
from fedstage.training.noisy_gradients import noisy_gradient
from fedstage.weights import Weights

KEPT_EVERY = 5  # rounds between scores of the aggregator in FENS's released code

#: After a round: lambda, the number of participants and their mean loss.
Progress = tuple[Weights, int, torch.Tensor]


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
    samples: Mapping[int, Samples]  # by client
    seed: int
    members: Sequence[int] = ()  # clients, in order of the members
    own_key: str = ""  # of the recipe, for noise and secrets (`protocol.digests.own_key`)
    privacy: ExamplePrivacy | None = None  # noise that hides clients' samples, if any does


@dataclass(frozen=True)
class Sampled:
    """What all participants of a round transfer where each has only some of the members."""

    fetched: Mapping[int, int]  # by position of a member, how many participants lacked its model
    coordinates: int  # numbers that are sent, and sent back


@dataclass(frozen=True)
class Round:
    """A round of the training."""

    number: int  # from 1
    participants: int  # how many clients took part
    loss: float | None  # mean over the participants' steps; None if the server does not learn it
    sampled: Sampled | None = None
    # Bytes up and down of the mean participant with secure aggregation, without the aggregator.
    messages: tuple[int, int] | None = None


@dataclass(frozen=True)
class Trained:
    """An aggregator's parameters after the last round, and all rounds.

    `kept` are its parameters after some of the rounds, by their numbers.
    """

    parameters: Weights
    rounds: list[Round]
    kept: Mapping[int, Weights] = field(default_factory=dict)


class AggregatorTrainer(Protocol):
    """The function that a module of this package defines."""

    def train(self, settings: Any, task: Task) -> Trained:
        """Train lambda until the last round."""


def trainer(settings: AggregatorTraining) -> AggregatorTrainer:
    """Return the module that trains as these settings define."""
    return cast(AggregatorTrainer, implementation(settings))


def gradient(
    combine: Combine, parameters: Weights, samples: Samples, noise: NoisyBatches | None = None
) -> tuple[torch.Tensor, Weights]:
    """Return the mean cross entropy of samples and its gradient with respect to lambda.

    With `noise` it is the gradient of DP-SGD, from clipped gradients of samples.
    """
    if noise is not None:

        def loss_of(weights: Weights, *sample: torch.Tensor) -> torch.Tensor:
            logits, label, *seen = (part[None] for part in sample)
            pixels = seen[0] if seen else None
            return cross_entropy(combine(weights, logits.movedim(0, 1), pixels), label)

        parts = [samples.logits.movedim(1, 0), samples.labels]
        parts += [] if samples.pixels is None else [samples.pixels]
        noisy, mean = noisy_gradient(noise, loss_of, parameters, parts)
        return mean, noisy
    moving = {name: value.detach().requires_grad_() for name, value in parameters.items()}
    loss = cross_entropy(combine(moving, samples.logits, samples.pixels), samples.labels)
    slopes = torch.autograd.grad(loss, list(moving.values()))
    return loss.detach(), dict(zip(moving, slopes, strict=True))


def follow(training: Iterable[Progress], learning_rate: float) -> Trained:
    """Train until the end; FedstageError names the first round whose loss is not finite."""
    present, losses = [], []
    kept: dict[int, Weights] = {}
    for number, (parameters, participants, loss) in enumerate(training, start=1):
        if number % KEPT_EVERY == 0:
            kept[number] = parameters
        present.append(participants)
        losses.append(loss)
    values = torch.stack(losses).cpu()
    wrong = (~values.isfinite()).nonzero()
    if len(wrong):
        raise diverged(learning_rate, int(wrong[0]) + 1)
    columns = zip(present, values.tolist(), strict=True)
    rounds = [Round(number, *columns) for number, columns in enumerate(columns, start=1)]
    return Trained(parameters, rounds, kept)


def diverged(learning_rate: float, number: int) -> FedstageError:
    """Return the error of a round after which training has diverged."""
    return FedstageError(
        f"aggregator, round {number}: the loss is not finite; lower "
        f"aggregator_training.learning_rate = {learning_rate}"
    )
