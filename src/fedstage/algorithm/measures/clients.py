"""Accuracy of one model for each client and for each class."""

from collections.abc import Iterator
from typing import Any

import torch

from fedstage.algorithm.measures.metrics import CLASS, OWN_MIX
from fedstage.algorithm.measures.scores import PERCENT, ClassCounts, Score, by_own_mix, count_own
from fedstage.training.passes import class_accuracies

Row = dict[str, Any]


def of_own(of: str, right: torch.Tensor, owners: torch.Tensor, clients: int) -> list[Row]:
    """Return the accuracy of each client on its own samples.

    Parameters
    ----------
    of : str
        What these samples are: `TEST` or `VALIDATION`.
    right : Tensor
        Whether the prediction of a sample is correct, bool [n].
    owners : Tensor
        The client of each sample, int64 [n]; samples of none of the `clients` do not count.
    """
    correct, samples = count_own(right, owners, clients)
    pairs = enumerate(zip(correct.tolist(), samples.tolist(), strict=True))
    return [_row(of, client, None, count, _share(own, count)) for client, (own, count) in pairs]


def of_classes(logits: torch.Tensor, labels: torch.Tensor) -> list[Row]:
    """Return the accuracy of each class that has any test samples, from [n, classes] and [n]."""
    right, samples = class_accuracies(logits, labels)
    return [
        _row(CLASS, None, label, int(own), _share(float(right[label]), int(own)))
        for label, own in enumerate(samples)
        if own
    ]


def of_mixes(score: Score, counts: ClassCounts) -> Iterator[Row]:
    """Yield the accuracy of each client on its own mix of classes: see `by_own_mix`."""
    for client, accuracy in by_own_mix(score, counts).items():
        yield _row(OWN_MIX, client, None, sum(counts[client].values()), accuracy)


def _share(right: float, samples: int) -> float | None:
    return PERCENT * (right / samples) if samples else None


def _row(
    of: str, client: int | None, label: int | None, samples: int, accuracy: float | None
) -> Row:
    return {"of": of, "client": client, "label": label, "samples": samples, "accuracy": accuracy}
