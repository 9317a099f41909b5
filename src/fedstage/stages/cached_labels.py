"""Stage `cached_labels`: what is known of public samples, from this round and those before it."""

from pathlib import Path

import torch

from fedstage.algorithm.ensemble_trainers import read_members
from fedstage.algorithm.exchange.caching import after_round
from fedstage.algorithm.global_trainers.targets import targets_from
from fedstage.settings.lines import Line
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.storage.yaml_files import read_line


def cached_labels(
    *,
    line: Path,
    round: int,
    logits: list[Path],
    before: Path | None = None,
    output: Path,
) -> None:
    """Write what there is to learn of each public sample, ``labels`` [n, ...].

    For samples that clients are asked for in this round it is what they say, by the line's
    `ensemble` and `distillation`; for others it stays as it was, and is zero where nobody was asked
    yet.

    Parameters
    ----------
    logits : list of Path
        Those of the round's participants, of all groups.
    before : Path, optional
        The same file of the round before.
    """
    settings = read_line(line, Line)
    new = targets_from(settings, read_members(logits))
    asked, _ = after_round(settings, len(new), round)
    labels = load_tensors(before)[0]["labels"] if before else torch.zeros_like(new)
    labels[asked] = new[asked]
    save_tensors(output, {"labels": labels}, {"round": round, "asked": len(asked)})
