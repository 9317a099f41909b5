"""Stage `cached_labels`: labels of public samples, from this round and earlier ones."""

from pathlib import Path

import torch

from fedstage.algorithm.ensemble_trainers import read_members
from fedstage.algorithm.exchange.caching import after_round
from fedstage.algorithm.global_trainers.transfers import targets_from
from fedstage.plan.inputs import CachedLabelsInputs
from fedstage.settings.recipes import Recipe
from fedstage.settings.teaching import teaching_of
from fedstage.storage.tensors import load_tensors, save_tensors


def cached_labels(
    recipe: Recipe, read: CachedLabelsInputs[Path], *, round_: int, output: Path
) -> None:
    """Write the targets of each public sample, ``labels`` [n, ...].

    For samples that clients are asked for in this round, targets follow from the clients' logits,
    by the run's `ensemble` and `distillation`. For other samples they stay unchanged, and are zero
    before the first time.
    """
    new = targets_from(teaching_of(recipe), read_members(read.logits))
    asked, _ = after_round(recipe, len(new), round_)
    labels = load_tensors(read.before)[0]["labels"] if read.before else torch.zeros_like(new)
    labels[asked] = new[asked]
    save_tensors(output, {"labels": labels}, {"round": round_, "asked": len(asked)})
