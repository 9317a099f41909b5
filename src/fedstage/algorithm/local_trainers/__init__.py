"""LocalTrainer: (global model, client data) -> client update.

A local trainer is a module of the functions below, found by the name of its settings. All are pure;
what a trainer keeps from round to round is in the group's round state, a dictionary of tensors.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, cast

import torch
from torch import nn

from fedstage.algorithm.exchange.updates import Update
from fedstage.errors import FedstageError
from fedstage.settings.base import implementation
from fedstage.settings.local_training import FedAvg, LocalTraining
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import Client
from fedstage.training.loop import GradientTerm, Outcome
from fedstage.training.passes import Loss, ModelLoss
from fedstage.weights import Tensors, Weights


@dataclass(frozen=True)
class Trained:
    """A client's training in one round: its parameters before and after, outcome and settings.

    `gradient_at_start` computes the gradient of all of the client's data at `start`, in one more
    pass over it.
    """

    start: Tensors
    end: Weights
    outcome: Outcome
    gradient_at_start: Callable[[], Weights]
    client: Client


@dataclass(frozen=True)
class Task:
    """What a client has when its training of a round begins.

    Attributes
    ----------
    model : nn.Module
        The model that will be trained, as the round starts.
    loss : callable
        The client's loss of logits [b, classes] against labels [b].
    state : dict
        The group's round state.
    labels : torch.Tensor
        Those of all of its samples, int64 [n].
    history : sequence of dict
        The last global models, in the order of rounds, where the trainer learns from them.
    losses : sequence of float
        Their losses on the server's validation set, where these are read.
    """

    model: nn.Module
    loss: Loss
    numerics: Numerics
    state: Weights
    client: int
    labels: torch.Tensor
    classes: int
    history: Sequence[Tensors] = ()
    losses: Sequence[float] = ()

    @cached_property
    def label_counts(self) -> torch.Tensor:
        """n_c, how many samples of each class the client has, int64 [classes]."""
        counts = torch.bincount(self.labels.cpu(), minlength=self.classes)
        return counts.to(self.labels.device)


class LocalTrainer(Protocol):
    """The functions of a local trainer's module.

    `start` holds the parameters of the global model, `state` the group's round state, which is
    empty in the first round.
    """

    def prepare(self, model: nn.Module, state: Tensors, client: int) -> None:
        """Change the model, which is the one that the round starts from, before it is trained."""

    def gradient_term(
        self, settings: Any, start: Tensors, state: Tensors, client: int
    ) -> GradientTerm | None:
        """Return what is added to each gradient; None for nothing."""

    def objective(self, settings: Any, task: Task) -> ModelLoss | None:
        """Return what the client minimises, if it is more than the loss of its logits.

        It is a function of the model, a batch and its labels: `passes.forward` gives the logits,
        and `heads.represent` the features, too, of a model with a head. Settings of a trainer that
        has an objective say `own_loss`, and `needs_head` where it reads features.
        """

    def payload(self, settings: Any, trained: Trained, state: Tensors, client: int) -> Weights:
        """Return what the client sends beside its weights."""

    def sent_down(self, start: Tensors, state: Tensors) -> Tensors:
        """Return what the server sends beside the global model."""

    def next_state(
        self, settings: Any, state: Tensors, updates: Sequence[Update], clients: int
    ) -> Tensors:
        """Return the state after this round; `clients` is N, all that can be in the group."""

    def scales(self, payloads: Sequence[Tensors], shares: Sequence[float]) -> list[float] | None:
        """Return the factor of each participant's change in the server's sum; None for 1.

        `shares` are p_i, which sum to 1.
        """


def local_trainer(settings: LocalTraining) -> LocalTrainer:
    """Return the module of a local trainer.

    Raises
    ------
    FedstageError
        If it has a state that its settings do not declare, so that nobody would keep it.
    """
    trainer = cast(LocalTrainer, implementation(settings))
    stateless = cast(LocalTrainer, implementation(FedAvg(name="fedavg"))).next_state
    if trainer.next_state is not stateless and not settings.keeps_state:
        raise FedstageError(
            f"local = {settings.name}: has a next_state of its own, and nobody keeps what it "
            f"returns: set keeps_state = True in the settings class {type(settings).__name__}, or "
            "take next_state from fedavg.py"
        )
    return trainer


def objective_of(settings: LocalTraining, task: Task) -> ModelLoss | None:
    """Return what a client minimises, None if that is the loss of its logits.

    Raises
    ------
    FedstageError
        If the settings do not declare a loss of the trainer's own, which is never compiled.
    """
    objective = local_trainer(settings).objective(settings, task)
    if objective is not None and not settings.own_loss:
        raise FedstageError(
            f"local = {settings.name}: has an objective of its own: set own_loss = True in the "
            f"settings class {type(settings).__name__}"
        )
    return objective
