"""Ditto (Li et al. 2021, Algorithm 1): each client also trains a model v of its own.

    v <- v - eta (g(v) + lambda (v - w_start))

v starts from the global model in the client's first round, and then goes on from its last one. It
takes the steps of the round's training, on the same batches, and is not sent. What is sent is
FedAvg's.
"""

from collections.abc import Sequence
from dataclasses import replace

from fedstage.algorithm.exchange.round_state import next_models
from fedstage.algorithm.exchange.updates import Update
from fedstage.algorithm.local_trainers import LocalTrainer
from fedstage.algorithm.local_trainers.fedprox import proximal
from fedstage.settings.local_training import Ditto
from fedstage.training.loop import GradientTerm
from fedstage.weights import Tensors


class Trainer(LocalTrainer[Ditto]):
    """FedAvg, and models of clients' own."""

    def own_term(self, start: Tensors) -> GradientTerm | None:
        """Return g <- g + lambda (v - w_start)."""
        return proximal(start, self.settings.strength)

    def next_state(self, state: Tensors, updates: Sequence[Update], clients: int) -> Tensors:
        """Return the own models of all clients."""
        return next_models(state, [replace(update, weights=update.kept) for update in updates])
