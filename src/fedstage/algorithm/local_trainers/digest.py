"""Clients that learn from each other's logits: FedMD (Li, Wang 2019), DS-FL (Itahara et al. 2023).

Each client keeps a model of its own, of any architecture. In a round it

    1. digests: learns the last round's logits of public samples, as students do
       (`global_trainers.digestion`);
    2. revisits: trains on its own samples;
    3. sends its logits of the public samples, which form the ensemble of this round.

The first time a client takes part, it starts from its architecture's initial model; in round 1
there is nothing to digest. FedMD averages logits, and its loss is their absolute difference
(`distillation` = l1). DS-FL averages probabilities and sharpens them (`entropy_reduction`). Its
order of steps is 2, 3, 1; here a client does step 1 when it next takes part. FedMD's clients first
train on labelled public data; here public data have no labels.
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
        """Load the client's last trained weights into the model, if it has any."""
        own = part(state, f"client/{client}/")
        if own:
            model.load_state_dict(own)

    def next_state(self, state: Tensors, updates: Sequence[Update], clients: int) -> Tensors:
        """Return the last trained models of all clients."""
        return next_models(state, updates)
