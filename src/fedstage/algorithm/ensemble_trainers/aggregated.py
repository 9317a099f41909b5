"""Temporal ensembling (FedSDD, Eq. 5): the K averaged models of the last R rounds.

y(x) = sigma( sum_k sum_r 1/(K R) f(x; w_{t-r,k}) ), r = 0, ..., R - 1, over the models before
distillation. In the first rounds fewer exist, and the divisor is their number.
"""

from collections.abc import Sequence

import torch

from fedstage.algorithm.ensemble_trainers import Members
from fedstage.settings.ensembles import Ensemble


def shares(settings: Ensemble, members: Sequence[Members]) -> torch.Tensor:
    """Return a_j = 1 / (number of members)."""
    count = sum(len(part.samples) for part in members)
    return torch.full((count,), 1 / count, dtype=torch.float64)
