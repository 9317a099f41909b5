"""The training loss of a round."""

from collections.abc import Iterable, Mapping
from typing import Any


def mean_loss(rows: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the mean over samples of participants' training losses, None if there are none.

    Parameters
    ----------
    rows : iterable of mapping
        Rows of tables of participants; one whose update was dropped has no loss.
    """
    counted = [row for row in rows if row["loss"] is not None]
    samples = sum(row["samples"] for row in counted)
    if not samples:
        return None
    return float(sum(row["loss"] * row["samples"] for row in counted) / samples)
