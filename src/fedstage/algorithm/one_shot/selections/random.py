"""k clients, chosen uniformly at random.

The seed gives all clients one random order, whose first k are chosen. A larger k therefore only
adds members, and a forgotten client is replaced by one other client.
"""

import torch

from fedstage.algorithm.one_shot.selections import Candidates
from fedstage.settings.selections import RandomMembers


def choose(
    settings: RandomMembers, candidates: Candidates, generator: torch.Generator
) -> list[int]:
    """Return the first clients of the random order."""
    order = torch.rand(max(candidates.clients) + 1, dtype=torch.float64, generator=generator)
    return sorted(candidates.clients, key=lambda client: float(order[client]))[: settings.count]
