"""The vanilla ensemble: all client models of the round (FedDF's teacher, for K = 1)."""

from collections.abc import Sequence

from fedstage.algorithm.ensemble_trainers import Members
from fedstage.settings.ensembles import Clients


def shares(settings: Clients, members: Sequence[Members]) -> list[float]:
    """Return a_j = 1/m, or proportional to the client's number of training samples."""
    samples = [count for part in members for count in part.samples]
    if settings.weights == "samples":
        return [count / sum(samples) for count in samples]
    return [1 / len(samples)] * len(samples)
