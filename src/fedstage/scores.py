"""Scores of logits against labels: for everyone, and for each client's own mix of classes."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from fedstage.engine.inference import class_accuracies, cross_entropy

PERCENT = 100.0
ClassCounts = Mapping[int, Mapping[int, int]]  # client -> class -> samples


@dataclass(frozen=True)
class Score:
    """How one model does.

    Attributes
    ----------
    accuracy : float
        Top-1, in percent.
    loss : float
        Mean cross entropy.
    by_class : torch.Tensor
        Top-1 accuracy of each class in percent, float64 [classes]; NaN for a class without samples.
    """

    accuracy: float
    loss: float
    by_class: torch.Tensor


def score(logits: torch.Tensor, labels: torch.Tensor) -> Score:
    """Score logits [n, classes] against labels [n]."""
    right, samples = class_accuracies(logits, labels)
    accuracy = PERCENT * float(right.sum() / samples.sum())
    return Score(accuracy, cross_entropy(logits, labels), PERCENT * right / samples)


def own_accuracies(scores: Sequence[Score], counts: ClassCounts) -> list[float]:
    """Return each client's accuracy on its own mix of classes, clients in order.

    The accuracy of each class weighs as many samples of it as the client trains on. Classes that
    the evaluated set lacks are left out, and so are clients that have no others.

    Parameters
    ----------
    scores : sequence of Score
        One for all clients, or one a client.
    """
    models = list(scores) * len(counts) if len(scores) == 1 else scores
    pairs = zip(sorted(counts), models, strict=True)
    own = (_weighted(model.by_class, counts[client]) for client, model in pairs)
    return [accuracy for accuracy in own if accuracy is not None]


def spread(values: Sequence[float]) -> float | None:
    """Return the standard deviation (n - 1), or None for fewer than two values."""
    return statistics.stdev(values) if len(values) > 1 else None


def _weighted(by_class: torch.Tensor, counts: Mapping[int, int]) -> float | None:
    known = {label: n for label, n in counts.items() if not math.isnan(float(by_class[label]))}
    if not known:
        return None
    return sum(float(by_class[label]) * n for label, n in known.items()) / sum(known.values())
