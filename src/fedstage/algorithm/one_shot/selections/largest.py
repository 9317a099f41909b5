"""The k clients with the most training samples ("data selection").

Guha et al. do not specify the minimum number of samples per client; here it is 1. Ties go to the
first clients.
"""

import torch

from fedstage.algorithm.one_shot.selections import Candidates
from fedstage.settings.selections import LargestMembers


def choose(
    settings: LargestMembers, candidates: Candidates, generator: torch.Generator
) -> list[int]:
    """Return the clients with the most samples."""
    sizes = candidates.samples
    large = [client for client in sorted(sizes) if sizes[client]]
    return sorted(large, key=lambda client: -sizes[client])[: settings.count]
