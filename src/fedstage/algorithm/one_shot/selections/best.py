"""The k clients whose models are best on their own held-out samples ("CV selection").

Guha et al. measure the area under the ROC curve for two classes, and do not specify the baseline
above which a client reports. Here the measure is accuracy, for any number of classes, and there is
no baseline. Ties go to the first clients; clients without validation samples are never chosen.
"""

import torch

from fedstage.algorithm.one_shot.selections import Candidates
from fedstage.settings.selections import BestMembers


def choose(settings: BestMembers, candidates: Candidates, generator: torch.Generator) -> list[int]:
    """Return the most accurate clients."""
    accuracies = candidates.accuracies
    return sorted(sorted(accuracies), key=lambda client: -accuracies[client])[: settings.count]
