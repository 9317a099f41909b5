"""k clients, uniformly.

All clients of the seed have one random order, of which the first k are chosen. So a larger k adds
members, and a client that is forgotten is replaced by one other.
"""

import torch

from fedstage.algorithm.one_shot.selections import Candidates
from fedstage.settings.selections import RandomMembers


def choose(
    settings: RandomMembers, candidates: Candidates, generator: torch.Generator
) -> list[int]:
    """Return the first clients of the order."""
    order = torch.rand(max(candidates.clients) + 1, dtype=torch.float64, generator=generator)
    return sorted(candidates.clients, key=lambda client: float(order[client]))[: settings.count]
