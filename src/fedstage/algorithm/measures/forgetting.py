"""Measures of forgetting: accuracies on participants' samples, and what is lost and gained.

Samples are given by whether a model is right about them: bool [n].
"""

from typing import Any, NamedTuple

import pyarrow as pa
import torch

_PERCENT = 100.0

#: One row per round t from 1, about the main model w*_{t,0} and the one before it, w*_{t-1,0}. E_t
#: are the training samples of the round's participants, and E is E_s of the last round s < t that
#: had participants: E_{t-1} unless all were absent. Values without samples are null: without
#: participants only the test accuracy is known, and in the first round nothing about E.
RETENTION_SCHEMA = pa.schema(
    [
        ("round", pa.int32()),
        ("samples", pa.int64()),  # of E_t
        ("current", pa.float64()),  # accuracy on E_t, in percent
        ("previous", pa.float64()),  # accuracy on E, in percent
        ("forget_score", pa.float64()),  # current minus previous, in percentage points
        ("lost", pa.int64()),  # samples of E about which only the model before was right,
        ("gained", pa.int64()),  # only this one is,
        ("retained", pa.int64()),  # and both are
        ("distance", pa.float64()),  # mean of PARTICIPANTS_SCHEMA's `distance`, in percent
        ("top1_accuracy", pa.float64()),  # on test samples, in percent
    ]
)


class Venn(NamedTuple):
    """Numbers of samples that only one of two models, or both, are right about."""

    lost: int
    gained: int
    retained: int


def percent_right(right: torch.Tensor) -> float:
    """Return the share of right predictions, bool [n] of at least one sample, in percent."""
    return _PERCENT * float(right.double().mean())


def venn(before: torch.Tensor, after: torch.Tensor) -> Venn:
    """Count the samples that only `before`, only `after`, and both are right about, bool [n]."""
    parts = (before & ~after, after & ~before, before & after)
    return Venn(*(int(part.sum()) for part in parts))


def forgetting(
    now: torch.Tensor | None, before: torch.Tensor | None, after: torch.Tensor | None
) -> dict[str, Any]:
    """Return the columns of a round that are about participants' samples.

    Parameters
    ----------
    now : Tensor, optional
        Which samples of E_t the model is right about, bool; None if all were absent.
    before, after : Tensor, optional
        Which samples of E the model before the round, and after it, is right about.
    """
    names = ("current", "previous", "forget_score", *Venn._fields)
    columns: dict[str, Any] = {"samples": 0, **dict.fromkeys(names)}
    if now is None:
        return columns
    current = percent_right(now)
    columns |= {"samples": len(now), "current": current}
    if before is None or after is None:
        return columns
    previous = percent_right(after)
    scores = {"previous": previous, "forget_score": current - previous}
    return columns | scores | venn(before, after)._asdict()
