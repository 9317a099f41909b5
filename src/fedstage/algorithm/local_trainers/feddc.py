"""FedDC (Gao et al. 2022): SCAFFOLD's correction of gradients, and FedDyn's of drifts.

    g <- g - c_i + c + alpha (w + h_i - w_start)

As released, the control variates are SCAFFOLD's, with option II, and the server adds the mean of
all clients' drifts h_i; the paper's correction is of the last changes alone.
"""

from collections.abc import Sequence

from torch import nn

from fedstage.algorithm.exchange.round_state import next_kept
from fedstage.algorithm.exchange.updates import Update
from fedstage.algorithm.local_trainers import Trained, feddyn, scaffold
from fedstage.settings.local_training import FedDc
from fedstage.training.loop import GradientTerm
from fedstage.weights import Tensors, Weights


class Trainer(scaffold.Trainer):
    """SCAFFOLD with FedDyn's distance in addition."""

    def __init__(self, settings: FedDc) -> None:
        super().__init__(settings)
        self.drifts = feddyn.Trainer(settings)

    def gradient_term(self, start: Tensors, state: Tensors, client: int) -> GradientTerm | None:
        """Return the sum of both terms."""
        terms = [
            one(start, state, client) for one in (super().gradient_term, self.drifts.gradient_term)
        ]

        def add(parameters: Sequence[nn.Parameter]) -> None:
            for term in filter(None, terms):
                term(parameters)

        return add

    def kept(self, trained: Trained, state: Tensors, client: int) -> Weights:
        """Return the client's drift."""
        return self.drifts.kept(trained, state, client)

    def next_state(self, state: Tensors, updates: Sequence[Update], clients: int) -> Tensors:
        """Return control variates and drifts."""
        return next_kept(super().next_state(state, updates, clients), updates)
