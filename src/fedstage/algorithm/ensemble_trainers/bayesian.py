"""FedBE's ensemble: all client models, the averaged one, and models drawn from their distribution.

`fedstage.algorithm.ensemble_trainers.sampling` draws the models.
"""

from collections.abc import Sequence

import torch

from fedstage.algorithm.ensemble_trainers import Members, aggregated
from fedstage.settings.ensembles import Bayesian


def shares(settings: Bayesian, members: Sequence[Members]) -> torch.Tensor:
    """Return the same weight for all members."""
    return aggregated.shares(settings, members)
