"""Metrics of one model that all clients share, or of clients' models one by one."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import torch

from fedstage.results.metrics import spread
from fedstage.results.scores import ClassCounts, Score, own_accuracies, score


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


def mean_metrics(scores: Sequence[Score], samples: int, counts: ClassCounts) -> dict[str, Any]:
    """Return the means of the scores of clients' models as columns of a metrics file.

    Parameters
    ----------
    scores : sequence of Score
        One a client of `counts`, in the order of clients; or a single one.
    samples : int
        How many samples were scored.
    """
    own = own_accuracies(scores, counts)
    areas = [scored.auc for scored in scores if scored.auc is not None]
    return {
        "top1_accuracy": fmean(scored.accuracy for scored in scores),
        "balanced_accuracy": fmean(scored.balanced_accuracy for scored in scores),
        "auc": fmean(areas) if len(areas) == len(scores) else None,
        "loss": fmean(scored.loss for scored in scores),
        "samples": samples,
        "client_std": spread([scored.accuracy for scored in scores]),
        "own_mean": fmean(own),
        "own_std": spread(own),
    }
