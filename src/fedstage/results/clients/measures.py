"""Accuracy of one model for each client and for each class."""

from collections.abc import Iterator
from typing import Any

import torch

from fedstage.results.clients.columns import CLASS, OWN_MIX, VALIDATION
from fedstage.results.scores import PERCENT, ClassCounts, Score, by_own_mix
from fedstage.training.inference import class_accuracies

Row = dict[str, Any]


def of_validation(right: torch.Tensor, owners: torch.Tensor) -> list[Row]:
    """Return the accuracy of each client that has validation samples.

    Parameters
    ----------
    right : Tensor
        Whether the model is right about a sample, bool [n].
    owners : Tensor
        The client of each sample, int64 [n].
    """
    clients = owners.unique().tolist()
    own = {client: right[owners == client] for client in clients}
    return [
        _row(VALIDATION, client, None, int(predicted.sum()), len(predicted))
        for client, predicted in own.items()
    ]


def of_classes(logits: torch.Tensor, labels: torch.Tensor) -> list[Row]:
    """Return the accuracy of each class of test samples [n, classes], [n] that has any."""
    right, samples = class_accuracies(logits, labels)
    return [
        _row(CLASS, None, label, float(right[label]), int(samples[label]))
        for label in labels.unique().tolist()
    ]


def of_mixes(score: Score, counts: ClassCounts) -> Iterator[Row]:
    """Yield the accuracy of each client on its own mix of classes: see `by_own_mix`."""
    for client, accuracy in by_own_mix(score, counts).items():
        yield {
            "of": OWN_MIX,
            "client": client,
            "label": None,
            "samples": sum(counts[client].values()),
            "accuracy": accuracy,
        }


def _row(of: str, client: int | None, label: int | None, right: float, samples: int) -> Row:
    accuracy = PERCENT * (right / samples)
    return {"of": of, "client": client, "label": label, "samples": samples, "accuracy": accuracy}
