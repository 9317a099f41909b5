"""Stage `choice`: take the candidate that is most accurate on validation samples."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedstage.algorithm.measures.metrics import METRICS_SCHEMA
from fedstage.errors import FedstageError
from fedstage.storage.files import save_json
from fedstage.storage.tables import load_table, save_table


def choice(
    *,
    values: Sequence[Any],
    validation: list[Path],
    metrics: list[Path],
    output: Path,
    chosen: Path,
) -> None:
    """Write the metrics of the best candidate, and the list of all.

    Parameters
    ----------
    values : sequence
        The settings of each candidate.
    validation : list of Path
        Metrics of each candidate on validation samples: the accuracy of the last round decides, and
        ties go to the first.
    metrics : list of Path
        Metrics of each candidate; the best candidate's are written.
    """
    accuracies = [_accuracy(path) for path in validation]
    best = accuracies.index(max(accuracies))
    save_table(output, load_table(metrics[best]).to_pydict(), METRICS_SCHEMA)
    tried: list[dict[str, Any]] = [
        {"values": point, "validation_accuracy": accuracy}
        for point, accuracy in zip(values, accuracies, strict=True)
    ]
    save_json(chosen, {"chosen": tried[best]["values"], "candidates": tried})


def _accuracy(path: Path) -> float:
    rows = load_table(path, ["round", "role", "top1_accuracy"]).to_pylist()
    last = max(rows, key=lambda row: row["round"])
    if last["role"] != "validation":
        raise FedstageError(f"{path}: role = {last['role']!r}: only 'validation' may decide")
    return float(last["top1_accuracy"])
