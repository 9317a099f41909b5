"""Stage `selected_labels`: the targets of the server's model for each public sample."""

from pathlib import Path

import torch

from fedstage.algorithm.ensemble_trainers import in_order, read_members, stack
from fedstage.algorithm.global_trainers.selection import select
from fedstage.data.samples import read_labelled
from fedstage.plan.inputs import SelectedLabelsInputs
from fedstage.settings.recipes import Recipe
from fedstage.stages.inputs import begin, load_model
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.training.inference import compute_logits


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
