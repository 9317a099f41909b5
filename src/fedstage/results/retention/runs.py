"""Forgetting of each run: its measures round by round, and their means."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, get_args

import torch

from fedstage.errors import FedstageError
from fedstage.results.cells import show_point
from fedstage.results.retention.measures import RETENTION_SCHEMA
from fedstage.results.runs_file import ExperimentRun
from fedstage.settings.scores import Axis, Retained
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import load_tensors

Row = Mapping[str, Any]


@dataclass(frozen=True)
class RunRetention:
    """The measures of a run.

    `rounds` are rows of `RETENTION_SCHEMA`, in order. `learnt` is the paper's G, bool [n]: whether
    the model is right about a test sample after the last round and was not before the first.
    """

    settings: Mapping[str, Axis]  # its value on every axis
    rounds: list[dict[str, Any]]
    learnt: torch.Tensor

    @property
    def numbers(self) -> dict[str, float | None]:
        """The final accuracy, and means over rounds; None for what no round has."""
        accuracies = [float(row["top1_accuracy"]) for row in self.rounds]
        known = {
            "final_accuracy": accuracies[-1],
            "fluctuation": mean(abs(after - before) for before, after in pairwise(accuracies)),
            "distance": mean(row["distance"] for row in self.rounds),
        }
        # Means over the same rounds, so that the score is the difference of the accuracies.
        later = [row for row in self.rounds if row["forget_score"] is not None]
        names = [name for name in get_args(Retained) if name not in known]
        means = {name: mean(row[name] for row in later) for name in names}
        return {name: (known | means)[name] for name in get_args(Retained)}


def read_retention(run: ExperimentRun) -> RunRetention:
    """Read the measures of a run, or of its chosen candidate if it has several.

    Raises
    ------
    FedstageError
        If a file is missing or damaged, or if the experiment does not measure forgetting.
    """
    if run.retention is None:
        raise FedstageError(
            f"{show_point(run.settings)}: retention = null: what it forgets is not measured; add "
            "retention to the experiment's results"
        )
    path = run.retention[run.which()]
    rows = load_table(path, RETENTION_SCHEMA.names).to_pylist()
    right = load_tensors(Path(path).with_suffix(".safetensors"))[0]
    learnt = right["end"] & ~right["start"]
    return RunRetention(run.settings, sorted(rows, key=lambda row: row["round"]), learnt)


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the known values, None if there are none."""
    known = [float(value) for value in values if value is not None]
    return fmean(known) if known else None
