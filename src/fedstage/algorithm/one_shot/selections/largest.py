"""The k clients with most training samples ("data selection").

Guha et al. leave open how many samples a client must have at least; here it is a setting, 1. Of
equals the first clients are chosen.
"""

import torch

from fedstage.algorithm.one_shot.selections import Candidates
from fedstage.settings.selections import LargestMembers


def choose(
    settings: LargestMembers, candidates: Candidates, generator: torch.Generator
) -> list[int]:
    """Return the largest of the clients that are large enough."""
    sizes = candidates.samples
    large = [client for client in sorted(sizes) if sizes[client] >= settings.samples]
    return sorted(large, key=lambda client: -sizes[client])[: settings.count]
