"""FedDyn (Acar et al. 2021, Algorithm 1).

Client i's drift h_i is the sum of its changes w_i - w_start so far; the paper has g_i = -alpha h_i.

    L(w) - <g_i, w> + alpha/2 ||w - w_start||^2,   that is   g <- g + alpha (w + h_i - w_start)

The server adds the mean of all drifts: `aggregation.server_optimizer` = ``drift``.
"""

from collections.abc import Sequence

from fedstage.algorithm.exchange.round_state import next_kept
from fedstage.algorithm.exchange.updates import Update, part
from fedstage.algorithm.local_trainers import LocalTrainer, Trained
from fedstage.algorithm.local_trainers.fedprox import proximal
from fedstage.settings.local_training import FedDc, FedDyn
from fedstage.training.loop import GradientTerm
from fedstage.weights import Tensors, Weights


class Trainer(LocalTrainer[FedDyn | FedDc]):
    """FedAvg with the gradient of the distance from w_start - h_i."""

    def gradient_term(self, start: Tensors, state: Tensors, client: int) -> GradientTerm | None:
        """Return g <- g + alpha (w + h_i - w_start)."""
        drift = part(state, f"client/{client}/drift/")
        centres = {name: anchor - drift.get(name, 0) for name, anchor in start.items()}
        return proximal(centres, self.settings.alpha)

    def kept(self, trained: Trained, state: Tensors, client: int) -> Weights:
        """Return h_i + w_i - w_start."""
        drift = part(state, f"client/{client}/drift/")
        moved = {name: trained.end[name] - start for name, start in trained.start.items()}
        return {f"drift/{name}": drift.get(name, 0) + change for name, change in moved.items()}

    def next_state(self, state: Tensors, updates: Sequence[Update], clients: int) -> Tensors:
        """Return the drifts of all clients."""
        return next_kept(state, updates)
