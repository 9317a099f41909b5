"""LocalTrainer: (global model, client data) -> client update.

A local trainer is a module of the functions below, found by the name of its settings. All are pure;
what a trainer remembers from round to round is the group's round state, a dictionary of tensors.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, cast

from fedstage.settings.optimisation import Client
from fedstage.storage.tensors import Weights
from fedstage.training.loop import GradientTerm, Outcome


@dataclass(frozen=True)
class Trained:
    """What a client did in a round.

    Attributes
    ----------
    start, end : dict
        The parameters before and after.
    outcome : Outcome
        Steps, loss and learning rates.
    gradient_at_start : Callable
        Computes the gradient of all of the client's data at `start`, in one more pass over it.
    client : Client
        The settings of the steps.
    """

    start: Weights
    end: Weights
    outcome: Outcome
    gradient_at_start: Callable[[], Weights]
    client: Client


class LocalTrainer(Protocol):
    """The functions that a local trainer's module has."""

    def gradient_term(
        self,
        settings: Any,
        start: Weights,
        state: Weights,
        client: int,
    ) -> GradientTerm | None:
        """Return what is added to each gradient.

        `start` holds the parameters of the global model, `state` the group's round state (empty in
        the first round).
        """

    def payload(self, settings: Any, trained: Trained, state: Weights, client: int) -> Weights:
        """Return what the client sends beside its weights."""

    def sent_down(self, start: Weights, state: Weights) -> Weights:
        """Return what the server sends beside the global model."""

    def next_state(
        self,
        settings: Any,
        state: Weights,
        payloads: Mapping[int, Weights],
        samples: Mapping[int, int],
        clients: int,
    ) -> Weights:
        """Return the state after this round, from payloads and samples by client.

        `clients` is N, all that can take part in the group.
        """

    def scales(self, payloads: Sequence[Weights], shares: Sequence[float]) -> list[float] | None:
        """Return by how much the server scales each participant's change before it adds them up.

        None: not at all, so that it takes the mean. `shares` are p_i, which sum to 1.
        """


def local_trainer(name: str) -> LocalTrainer:
    """Return the module of a local trainer."""
    return cast(LocalTrainer, import_module(f"fedstage.algorithm.local_trainers.{name}"))
