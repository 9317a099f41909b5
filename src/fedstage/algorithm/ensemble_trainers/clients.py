"""The vanilla ensemble: all client models of the round (FedDF's teacher, for K = 1).

With the weights ``confidence`` and probabilities averaged it is the weighted consensus of Fed-ET.
"""

from collections.abc import Sequence

import torch

from fedstage.algorithm.ensemble_trainers import Members, confidence_shares, stack
from fedstage.settings.ensembles import Clients


def shares(settings: Clients, members: Sequence[Members]) -> torch.Tensor:
    """Return a_j = 1/m, or in proportion to training samples; or for each sample by confidence."""
    if settings.weights == "confidence":
        return confidence_shares(stack(members).double())
    samples = [count for part in members for count in part.samples]
    if settings.weights == "uniform":
        samples = [1] * len(samples)
    return torch.tensor([count / sum(samples) for count in samples], dtype=torch.float64)
