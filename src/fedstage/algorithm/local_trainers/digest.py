"""Clients that learn from each other's logits: FedMD (Li, Wang 2019), DS-FL (Itahara et al. 2023).

Each client keeps a model of its own, of any architecture. In a round it

    1. digests: learns the last round's logits of public samples, as students do
       (`global_trainers.digestion`);
    2. revisits: trains on its own samples;
    3. sends its logits of the public samples, which form the ensemble of this round.

In its first participation it starts from its architecture's initial model, and in round 1 there is
nothing to digest. FedMD: the mean of logits, and their absolute difference (`distillation` = l1).
DS-FL: the mean of probabilities, sharpened (`entropy_reduction`). Its order is 2, 3, 1; here a
client does step 1 when it next takes part. FedMD's clients first train on labelled public data;
here public data have no labels.
"""

from collections.abc import Sequence

from torch import nn

from fedstage.algorithm.exchange.round_state import next_models
from fedstage.algorithm.exchange.updates import Update, part
from fedstage.algorithm.local_trainers import LocalTrainer, S
from fedstage.weights import Tensors


class Trainer(LocalTrainer[S]):
    """Training from the client's own model, which it keeps."""

    def prepare(self, model: nn.Module, state: Tensors, client: int) -> None:
        """Give the model the weights that the client has ended in last, if it has any."""
        own = part(state, f"client/{client}/")
        if own:
            model.load_state_dict(own)

    def next_state(self, state: Tensors, updates: Sequence[Update], clients: int) -> Tensors:
        """Return the models that all clients have ended in."""
        return next_models(state, updates)
