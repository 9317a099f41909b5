"""FedTGP (Zhang et al. 2024): FedProto whose global prototypes the server trains.

    P_c = W_2 relu(W_1 e_c + b_1) + b_2        e_c, W and b are trained in each round, and kept
    min mean over p_{n,c} of CE( -dist(p_{n,c}, P) - margin at c, c )
    margin = min( max_c min_{c'} |m_c - m_c'|, tau ),   m_c = mean of p_{n,c} over clients

As released, but for steps on all received prototypes in place of small batches.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from fedstage.algorithm.exchange.updates import Update, part
from fedstage.algorithm.local_trainers import fedproto
from fedstage.models.loading import state_of
from fedstage.randomness import Key, drawing_from
from fedstage.settings.local_training import FedTgp
from fedstage.weights import Tensors

_NETWORK = "server/network/"


class Trainer(fedproto.Trainer):
    """FedProto's clients, and a server that trains prototypes."""

    settings: FedTgp

    def shared(self, state: Tensors, updates: Sequence[Update], key: tuple[Key, ...]) -> Tensors:
        """Return P, the counts of all classes as 1, and the network that makes P."""
        sent = torch.stack([update.payload["prototypes"] for update in updates])
        held = torch.stack([update.payload["counts"] for update in updates]) > 0
        network = new_network(sent.shape[1], sent.shape[2], key)
        if before := part(state, _NETWORK):
            network.load_state_dict(before)
        margin = min(gap(sent, held), self.settings.margin)
        known, labels = sent[held], held.nonzero()[:, 1]
        descent = torch.optim.SGD(network.parameters(), lr=self.settings.learning_rate)
        for _ in range(self.settings.steps):
            apart = torch.cdist(known, network[1:](network[0].weight))
            loss = cross_entropy(-apart - margin * one_hot(labels, sent.shape[1]), labels)
            descent.zero_grad()
            loss.backward()
            descent.step()
        with torch.no_grad():
            made = network[1:](network[0].weight)
        kept = {f"{_NETWORK}{name}": value for name, value in state_of(network).items()}
        return {fedproto.PROTOTYPES: made, fedproto.COUNTS: torch.ones(len(made)), **kept}


def new_network(classes: int, width: int, key: tuple[Key, ...]) -> nn.Sequential:
    """Return the network from classes to prototypes, with torch's initial weights."""
    with drawing_from(*key):
        layers = [nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)]
        return nn.Sequential(nn.Embedding(classes, width), *layers)


def gap(sent: Tensor, held: Tensor) -> float:
    """Return max_c min_{c'} |m_c - m_c'| of prototypes [m, classes, width] that are held."""
    counts = held.sum(0)
    means = (sent * held[:, :, None]).sum(0)[counts > 0] / counts[counts > 0][:, None]
    apart = torch.cdist(means, means).fill_diagonal_(torch.inf)
    return float(apart.min(1).values.max())
