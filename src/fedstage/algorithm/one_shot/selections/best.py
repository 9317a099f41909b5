"""The k clients whose models are best on samples that they have held out ("CV selection").

Guha et al. measure the area under the ROC curve of two classes, and leave the baseline open, above
which a client reports. Here it is accuracy, of any number of classes, and the baseline 0. Of equals
the first clients are chosen; clients without validation samples never are.
"""

import torch

from fedstage.algorithm.one_shot.selections import Candidates
from fedstage.settings.selections import BestMembers


def choose(settings: BestMembers, candidates: Candidates, generator: torch.Generator) -> list[int]:
    """Return the most accurate of the clients that are at the baseline."""
    accuracies = candidates.accuracies
    good = [client for client in sorted(accuracies) if accuracies[client] >= settings.at_least]
    return sorted(good, key=lambda client: -accuracies[client])[: settings.count]
