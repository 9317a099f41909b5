"""LocalTrainer: (global model, client data) -> client update.

A local trainer is a module of the functions below, found by the name of its settings. All are pure;
what a trainer keeps from round to round is in the group's round state, a dictionary of tensors.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from torch import nn

from fedstage.algorithm.exchange.updates import Update
from fedstage.settings.base import implementation
from fedstage.settings.local_training import LocalTraining
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

    def objective(
        self,
        settings: Any,
        loss: Loss,
        numerics: Numerics,
        model: nn.Module,
        state: Tensors,
        client: int,
    ) -> ModelLoss | None:
        """Return what the client minimises, if it is more than the `loss` of its logits.

        `model` is the one that will be trained, as the round starts.
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
    """Return the module of a local trainer."""
    return cast(LocalTrainer, implementation(settings))
