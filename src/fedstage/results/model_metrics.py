"""Metrics of one model that all clients share."""

from typing import Any

import torch

from fedstage.results.metrics import spread
from fedstage.results.scores import ClassCounts, own_accuracies, score


def model_metrics(
    logits: torch.Tensor, labels: torch.Tensor, counts: ClassCounts
) -> dict[str, Any]:
    """Return the scores of logits [n, classes] as columns of a metrics file."""
    result = score(logits.cpu(), labels.cpu())
    own = own_accuracies([result], counts)
    return {
        **result.columns,
        "samples": len(labels),
        "client_std": None,
        "own_mean": sum(own) / len(own),
        "own_std": spread(own),
    }
