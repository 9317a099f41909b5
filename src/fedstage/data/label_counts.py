"""How many training samples of each class each client has, as stages read it, without torch."""

from collections import defaultdict
from pathlib import Path

from fedstage.storage.tables import load_table


def read_counts(histogram: Path) -> dict[int, dict[int, int]]:
    """Return the number of training samples of every client and class."""
    counts: dict[int, dict[int, int]] = defaultdict(dict)
    for row in load_table(histogram, ["client", "role", "label", "samples"]).to_pylist():
        if row["role"] == "train":
            counts[row["client"]][row["label"]] = row["samples"]
    return counts
