"""Distillation of DS-FL (Itahara et al. 2023): entropy reduction aggregation.

    t(x) = softmax( p(x) / T )       p the teacher's probabilities, 0 to 1, in place of logits
    L(w) = mean_x CE( t(x), sigma(f(x; w)) )

Because p is at most 1, T = 0.1 sharpens p, and T = 1 blurs it.
"""

import torch
from torch.nn.functional import cross_entropy

from fedstage.settings.server import Server
from fedstage.settings.transfers import EntropyReduction
from fedstage.training.passes import Loss


def targets(
    settings: EntropyReduction, teacher: torch.Tensor, members: torch.Tensor
) -> torch.Tensor:
    """Return t [n, C]."""
    return (teacher.softmax(1) / settings.temperature).softmax(1)


def loss(settings: EntropyReduction, server: Server) -> Loss:
    """Return the cross entropy to given probabilities."""
    return cross_entropy
