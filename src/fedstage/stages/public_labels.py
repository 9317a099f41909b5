"""Stages that make labels of public samples: of this round and earlier ones, or selected."""

from pathlib import Path

import torch

from fedstage.algorithm.ensemble_trainers import in_order, read_members, stack
from fedstage.algorithm.exchange.caching import after_round
from fedstage.algorithm.global_trainers.selection import select
from fedstage.algorithm.global_trainers.transfers import targets_from
from fedstage.data.samples import read_labelled
from fedstage.plan.inputs import CachedLabelsInputs, SelectedLabelsInputs
from fedstage.protocol.teaching import teaching_of
from fedstage.settings.recipes import Recipe
from fedstage.stages.inputs import begin, load_model
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.training.passes import compute_logits


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


def selected_labels(
    recipe: Recipe, read: SelectedLabelsInputs[Path], *, round_: int, output: Path
) -> None:
    """Write ``labels`` [n, 2 + C] of the `fedgems` loss, and ``pool`` [n, C] with ``pooled``."""
    device, info = begin(recipe, read.info)
    images, labels = read_labelled(read.public, None, device, info)
    model = load_model(read.start, recipe.model, info, device, recipe.numerics)
    own = compute_logits(model, images, info, recipe.numerics)
    members = stack(in_order(read_members(read.logits))).float()
    pool, pooled = torch.zeros_like(own), torch.zeros(len(own), dtype=torch.bool)
    if read.before:
        known = load_tensors(read.before)[0]
        pool, pooled = known["pool"], known["pooled"]
    chosen = select(own, members, labels.cpu(), pool, pooled)
    tensors = {"labels": chosen.targets, "pool": chosen.pool, "pooled": chosen.pooled}
    save_tensors(output, tensors, {"round": round_})
