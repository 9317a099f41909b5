"""Training of an aggregator over the cached logits of clients' models (FENS, Algorithm 2, phase 2).

The models are frozen, so what they say about each sample is computed once and a step costs next to
nothing: a module a way to train, found by the name of its settings.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, cast

import torch
from torch.nn.functional import cross_entropy

from fedstage.algorithm.one_shot.aggregators import Combine
from fedstage.errors import FedstageError
from fedstage.settings.aggregators import FederatedRounds, ProxySet
from fedstage.storage.tensors import Weights


@dataclass(frozen=True)
class Samples:
    """Labelled samples as an aggregator sees them.

    Attributes
    ----------
    logits : torch.Tensor
        [M, n, C]: what the members say about them.
    labels : torch.Tensor
        int64 [n].
    pixels : torch.Tensor or None
        Normalised images [n, channels, height, width], for a rule that sees them.
    """

    logits: torch.Tensor
    labels: torch.Tensor
    pixels: torch.Tensor | None = None

    def __len__(self) -> int:
        """Return n."""
        return len(self.labels)

    def at(self, index: torch.Tensor) -> "Samples":
        """Return some of the samples."""
        pixels = None if self.pixels is None else self.pixels[index]
        return Samples(self.logits[:, index], self.labels[index], pixels)


@dataclass(frozen=True)
class Round:
    """A round, or a step of a server that trains alone.

    Attributes
    ----------
    number : int
        From 1.
    participants : int
        Clients that took part.
    loss : float
        Mean loss over the participants' steps.
    accuracy : float or None
        Percent of the validation samples that are right afterwards, where that is measured.
    """

    number: int
    participants: int
    loss: float
    accuracy: float | None = None


@dataclass(frozen=True)
class Trained:
    """An aggregator's parameters, the round that they are of, and all rounds."""

    parameters: Weights
    best: int
    rounds: list[Round]


class AggregatorTrainer(Protocol):
    """The function that a module has."""

    def train(
        self,
        settings: Any,
        combine: Combine,
        parameters: Weights,
        samples: Mapping[int, Samples],
        validation: Samples | None,
        seed: int,
    ) -> Trained:
        """Train lambda, from `parameters` on.

        Parameters
        ----------
        samples : mapping of int to Samples
            Those of each client, or the server's own under -1.
        validation : Samples, optional
            For early stopping.
        """


def trainer(settings: FederatedRounds | ProxySet) -> AggregatorTrainer:
    """Return the module of a way to train."""
    return cast(
        AggregatorTrainer,
        import_module(f"fedstage.algorithm.one_shot.aggregator_training.{settings.name}"),
    )


def gradient(
    combine: Combine, parameters: Weights, samples: Samples
) -> tuple[torch.Tensor, Weights]:
    """Return the mean cross entropy of samples and its gradient by lambda."""
    moving = {name: value.detach().requires_grad_() for name, value in parameters.items()}
    loss = cross_entropy(combine(moving, samples.logits, samples.pixels), samples.labels)
    found = torch.autograd.grad(loss, list(moving.values()))
    return loss.detach(), dict(zip(moving, found, strict=True))


def check_finite(losses: torch.Tensor, unit: str, rate: float) -> None:
    """Refuse a training that diverged.

    Raises
    ------
    FedstageError
        Names the first round or step with a loss that is not finite.
    """
    wrong = (~losses.isfinite()).nonzero()
    if len(wrong):
        raise FedstageError(
            f"aggregator, {unit} {int(wrong[0]) + 1}: the loss is not finite; lower "
            f"aggregator_training.learning_rate = {rate}"
        )
