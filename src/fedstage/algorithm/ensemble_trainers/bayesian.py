"""FedBE's ensemble: all client models, the averaged one, and models drawn from their distribution.

What is drawn, and how, stands in `fedstage.algorithm.ensemble_trainers.sampling`.
"""

from collections.abc import Sequence

from fedstage.algorithm.ensemble_trainers import Members
from fedstage.settings.ensembles import Bayesian


def shares(settings: Bayesian, members: Sequence[Members]) -> list[float]:
    """Return a_j = 1 / (number of members): those of all kinds weigh the same."""
    count = sum(len(part.samples) for part in members)
    return [1 / count] * count
