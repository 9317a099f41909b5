"""Clients that learn by one another's logits (FedMD, Li and Wang 2019; DS-FL, Itahara et al. 2023).

Each client keeps a model of its own, of any architecture. In a round it

    1. digests: learns the last round's logits of public samples, as students do
       (`global_trainers.digestion`);
    2. revisits: trains on its own samples;
    3. says its logits on the public samples, from which the ensemble of this round is made.

In its first participation it starts from its architecture's initial model, and in round 1 there is
nothing to digest. FedMD: the mean of logits, and their absolute difference (`distillation` = l1).
DS-FL: the mean of probabilities, sharpened (`entropy_reduction`); its order is 2, 3, 1, which is
the same but for clients that wait with 1 for their next participation. FedMD's clients first train
on labelled public data; here public data have no labels.
"""

from torch import nn

from fedstage.algorithm.exchange.updates import part
from fedstage.algorithm.local_trainers.fedavg import (
    gradient_term,
    objective,
    payload,
    scales,
    sent_down,
)
from fedstage.algorithm.local_trainers.moon import next_state
from fedstage.weights import Tensors

__all__ = [
    "gradient_term",
    "next_state",
    "objective",
    "payload",
    "prepare",
    "scales",
    "sent_down",
]


def prepare(model: nn.Module, state: Tensors, client: int) -> None:
    """Let the model be the one that the client has ended in last, if it has taken part before."""
    own = part(state, f"client/{client}/")
    if own:
        model.load_state_dict(own)
