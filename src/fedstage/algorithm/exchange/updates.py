"""Updates: what `local_training` writes and aggregation and ensembles read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedstage.storage.tensors import Weights, load_tensors


@dataclass(frozen=True)
class Update:
    """One participant's update.

    Attributes
    ----------
    path : Path
        Where it was read from.
    weights : dict
        The trained model; empty where training diverged.
    payload : dict
        What the local trainer sends beside the weights.
    notes : dict
        round, group, slot, client, samples; steps and loss, or diverged_at.
    residual : dict
        What compression left out, by NAME; the client keeps it, and does not send it.
    """

    path: Path
    weights: Weights
    payload: Weights
    notes: dict[str, Any]
    residual: Weights = field(default_factory=dict)

    @property
    def diverged(self) -> bool:
        """Whether the update was dropped."""
        return "diverged_at" in self.notes


def read_updates(paths: Sequence[Path]) -> list[Update]:
    """Read a group's updates, in the order of their slots."""
    read = [_split(path, *load_tensors(path)) for path in paths]
    return sorted(read, key=lambda update: update.notes["slot"])


def answered(updates: Sequence[Update]) -> list[Update]:
    """Return the updates of the participants that did not diverge."""
    return [update for update in updates if not update.diverged]


def _split(path: Path, tensors: Weights, notes: dict[str, Any]) -> Update:
    def part(prefix: str) -> Weights:
        return {
            name.removeprefix(prefix): value
            for name, value in tensors.items()
            if name.startswith(prefix)
        }

    return Update(path, part("model/"), part("payload/"), notes, part("residual/"))
