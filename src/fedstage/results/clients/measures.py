"""Accuracy of one model for each client and for each class."""

from collections.abc import Iterator
from typing import Any

import torch

from fedstage.results.clients.columns import CLASS, OWN_MIX, VALIDATION
from fedstage.results.scores import PERCENT, ClassCounts, Score, own_accuracies

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
    return [_row(VALIDATION, client, None, right[owners == client].double()) for client in clients]


def of_classes(logits: torch.Tensor, labels: torch.Tensor) -> list[Row]:
    """Return the accuracy of each class of test samples [n, classes], [n] that has any."""
    right = logits.argmax(1) == labels
    return [
        _row(CLASS, None, label, right[labels == label].double())
        for label in labels.unique().tolist()
    ]


def of_mixes(score: Score, counts: ClassCounts) -> Iterator[Row]:
    """Yield the accuracy of each client on its own mix of classes: see `own_accuracies`."""
    for client, own in sorted(counts.items()):
        found = own_accuracies([score], {client: own})
        yield {
            "of": OWN_MIX,
            "client": client,
            "label": None,
            "samples": sum(own.values()),
            "accuracy": found[0] if found else None,
        }


def _row(of: str, client: int | None, label: int | None, right: torch.Tensor) -> Row:
    accuracy = PERCENT * float(right.mean())
    samples = len(right)
    return {"of": of, "client": client, "label": label, "samples": samples, "accuracy": accuracy}
