"""LocalTrainer: (global model, client data) -> client update (FedEED, Algorithm 1).

A local trainer is a module with a class `Trainer`, found by the name of its settings, which
overrides the functions in which it differs from FedAvg. All are pure: what a trainer keeps from
round to round is in the group's round state, a dictionary of tensors.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import torch
from torch import nn

from fedstage.algorithm.exchange.updates import Update
from fedstage.randomness import Key
from fedstage.settings.base import implementation
from fedstage.settings.local_training import LocalTraining
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import Client
from fedstage.training.loop import GradientTerm, Outcome
from fedstage.training.passes import Loss, ModelLoss
from fedstage.weights import Tensors, Weights


@dataclass(frozen=True)
class Trained:
    """A client's training in one round: its parameters before and after, outcome and settings."""

    start: Tensors
    end: Weights
    outcome: Outcome
    client: Client
    labels: torch.Tensor
    """Of its samples, [n], on the CPU."""
    seen: Callable[[], torch.Tensor]
    """Returns the features [n, width] of its samples, by a model with a head, on the CPU."""


@dataclass(frozen=True)
class Task:
    """What a client has when its training of a round begins.

    Attributes
    ----------
    model : nn.Module
        The model to be trained, as it is at the start of the round.
    loss : callable
        The client's loss of logits [b, classes] against labels [b].
    state : dict
        The group's round state.
    labels : torch.Tensor
        The labels of all of the client's samples, int64 [n].
    generator : torch.Generator
        Draws what the trainer draws, on the CPU.
    history : sequence of dict
        The last global models, in the order of rounds, where the trainer learns from them.
    losses : sequence of float
        The losses of `history` on the server's validation set, if the trainer uses them.
    """

    model: nn.Module
    loss: Loss
    numerics: Numerics
    state: Weights
    client: int
    labels: torch.Tensor
    classes: int
    generator: torch.Generator
    history: Sequence[Tensors] = ()
    losses: Sequence[float] = ()

    @cached_property
    def label_counts(self) -> torch.Tensor:
        """n_c, how many samples of each class the client has, int64 [classes]."""
        counts = torch.bincount(self.labels.cpu(), minlength=self.classes)
        return counts.to(self.labels.device)


#: The settings of a local trainer.
S = TypeVar("S", bound=LocalTraining)


class LocalTrainer(Generic[S]):
    """What a local trainer does in a round; by default FedAvg's.

    `start` holds the parameters of the global model, `state` the group's round state, which is
    empty in the first round.
    """

    def __init__(self, settings: S) -> None:
        self.settings = settings

    def prepare(self, model: nn.Module, state: Tensors, client: int) -> None:
        """Modify in place the model that the round starts from, before it is trained."""

    def gradient_term(self, start: Tensors, state: Tensors, client: int) -> GradientTerm | None:
        """Return what is added to each gradient; None for nothing."""
        return None

    def own_term(self, start: Tensors) -> GradientTerm | None:
        """Return what is added to each gradient of a client's own model; None for nothing.

        A trainer with such models sets `has_own_model` and `keeps_state` in its settings, and keeps
        them by `next_state`: they are in `kept` of the updates.
        """
        return None

    def objective(self, task: Task) -> ModelLoss | None:
        """Return what the client minimises; None for the loss of its logits.

        It is a function of the model, a batch and its labels: `passes.forward` returns the logits,
        and `heads.represent` also the features of a model with a head. A trainer with an objective
        sets `own_loss` in its settings, and `needs_head` if it reads features.
        """
        return None

    def payload(self, trained: Trained, state: Tensors, client: int) -> Weights:
        """Return what the client sends in addition to its weights."""
        return {}

    def summed(self, start: Tensors) -> Tensors:
        """Return tensors shaped like the payloads whose sum is all that the server needs.

        With secure aggregation, the server gets nothing else of payloads.
        """
        return {}

    def kept(self, trained: Trained, state: Tensors, client: int) -> Weights:
        """Return what the client keeps for `next_state` without sending it."""
        return {}

    def sent_down(self, start: Tensors, state: Tensors) -> Tensors:
        """Return what the server sends in addition to the global model."""
        return {}

    def next_state(self, state: Tensors, updates: Sequence[Update], clients: int) -> Tensors:
        """Return the state after this round; `clients` is N, the number that can be in the group.

        A trainer with a state sets `keeps_state` in its settings.
        """
        return {}

    def shared(self, state: Tensors, updates: Sequence[Update], key: tuple[Key, ...]) -> Tensors:
        """Return what the server learns from the participants of all groups, named server/...

        What it draws follows from `key`. All groups' states have it. A trainer that overrides it
        sets `shares_state` in its settings.
        """
        return {}

    def server_state(self, state: Tensors, total: Tensors, clients: int) -> Tensors:
        """Return the server's part of `next_state`, named server/..., from the sum of payloads."""
        return {}

    def scales(self, payloads: Sequence[Tensors], shares: Sequence[float]) -> list[float] | None:
        """Return the factor of each participant's change in the server's sum; None for 1.

        `shares` are p_i, which sum to 1.
        """
        return None


def local_trainer(settings: LocalTraining) -> LocalTrainer[Any]:
    """Return the local trainer of these settings."""
    trainer: LocalTrainer[Any] = implementation(settings).Trainer(settings)
    return trainer
