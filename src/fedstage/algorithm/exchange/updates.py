"""Updates: what `local_training` writes and aggregation and ensembles read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedstage.storage.tensors import open_tensors
from fedstage.weights import Tensors, renamed


@dataclass(frozen=True)
class Update:
    """What a participant sends, read from the file `path`; tensors are read when they are used.

    Attributes
    ----------
    weights, payload : dict
        The trained model, and what the local trainer sends with it; empty where training
        diverged.
    metadata : dict
        round, group, participant, client, base_round, samples; steps and loss, or diverged_at.
    residual : dict
        What compression left out, by NAME; the client keeps it, and does not send it.
    kept : dict
        What the local trainer keeps on the client; it is not sent, either.
    """

    path: Path
    weights: Tensors
    payload: Tensors
    metadata: dict[str, Any]
    residual: Tensors = field(default_factory=dict)
    kept: Tensors = field(default_factory=dict)

    @property
    def delay(self) -> int:
        """How many rounds its starting model was older than the model of the previous round."""
        return int(self.metadata["round"] - 1 - self.metadata["base_round"])

    @property
    def diverged(self) -> bool:
        """Whether the update was dropped."""
        return "diverged_at" in self.metadata


def read_updates(paths: Sequence[Path]) -> list[Update]:
    """Read the updates of a group, in the order of participants.

    Absent participants are left out.
    """
    updates = []
    for path, (tensors, metadata) in zip(paths, map(open_tensors, paths), strict=True):
        if metadata["client"] is None:
            continue
        model, payload, residual, kept = (
            part(tensors, f"{kind}/") for kind in ("model", "payload", "residual", "kept")
        )
        updates.append(Update(path, model, payload, metadata, residual, kept))
    return sorted(updates, key=lambda update: update.metadata["participant"])


def place_of(path: Path) -> dict[str, int]:
    """Return the round and group of an update, even if its participant was absent."""
    metadata = open_tensors(path)[1]
    return {key: metadata[key] for key in ("round", "group")}


def answered(updates: Sequence[Update]) -> list[Update]:
    """Return the updates of the participants that did not diverge."""
    return [update for update in updates if not update.diverged]


def part(tensors: Tensors, prefix: str) -> Tensors:
    """Return the tensors whose names start with a prefix, by the rest of their names."""
    below = (name for name in tensors if name.startswith(prefix))
    return renamed(tensors, {name: name.removeprefix(prefix) for name in below})
