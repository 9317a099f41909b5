"""Accuracy of one model for each client and for each class."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import torch

from fedstage.results.scores import PERCENT, ClassCounts, Score, by_own_mix, count_own
from fedstage.training.passes import class_accuracies

#: What an accuracy is measured on: a client's own test samples, its own validation samples, all
#: test samples weighted by the client's own mix of classes, or the test samples of a class.
TEST, VALIDATION, OWN_MIX, CLASS = "test", "validation", "own_mix", "class"

#: One row per client and kind of accuracy, and one per class.
CLIENTS_SCHEMA = pa.schema(
    [
        pa.field("of", pa.string(), nullable=False),
        pa.field("client", pa.int64()),  # null for a class
        pa.field("label", pa.int64()),  # null for a client
        # The number of scored samples; for a mix, of the client's training samples.
        pa.field("samples", pa.int64(), nullable=False),
        # Percent; null for a client without samples, or with a mix that the test samples lack.
        pa.field("accuracy", pa.float64()),
    ]
)


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
