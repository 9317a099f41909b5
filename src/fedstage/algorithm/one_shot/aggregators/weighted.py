"""Weighted averaging by label counts (FedKD, Gong et al. 2022; FENS, Section 3.6).

    f(z)_c = sum_i lambda_{i,c} z_{i,c},     lambda_{i,c} = n_i^c / sum_j n_j^c

n_i^c is the number of samples of class c on which client i trains. For a class that no client has,
lambda is 0/0, which the papers leave open: here it is 1/M, the mean over clients.
"""

import torch

from fedstage.algorithm.one_shot.aggregators import Knowledge
from fedstage.algorithm.one_shot.aggregators.per_class import combine
from fedstage.settings.aggregators import Weighted
from fedstage.weights import Weights

__all__ = ["combine", "parameters"]


def parameters(settings: Weighted, known: Knowledge, generator: torch.Generator) -> Weights:
    """Return lambda [M, C]."""
    counts = known.label_counts.double()
    held = counts.sum(0)
    shares = torch.where(held > 0, counts / held.clamp(min=1), 1 / known.members)
    return {"weights": shares.float()}
