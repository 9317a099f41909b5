"""Stage `selected_labels`: what the server's model is to learn of each public sample."""

from pathlib import Path

import torch

from fedstage.algorithm.ensemble_trainers import in_order, read_members, stack
from fedstage.algorithm.global_trainers.selection import select
from fedstage.data.samples import read_labelled
from fedstage.settings.lines import Line
from fedstage.stages.inputs import begin, load_model
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.training.inference import compute_logits


def selected_labels(
    *,
    line: Path,
    info: Path,
    round: int,
    start: Path,
    logits: list[Path],
    public: Path,
    before: Path | None = None,
    output: Path,
) -> None:
    """Write ``labels`` [n, 2 + C] of the `fedgems` loss, and the ``pool`` [n, C] with ``pooled``.

    Parameters
    ----------
    start : Path
        The server's model before its distillation.
    logits : list of Path
        Those of the round's participants, of all groups.
    public : Path
        Labelled public samples.
    before : Path, optional
        The same file of the round before.
    """
    settings, device, dataset_info = begin(line, Line, info)
    images, labels = read_labelled(public, None, device, dataset_info)
    model = load_model(start, settings.model, dataset_info, device, settings.numerics)
    own = compute_logits(model, images, dataset_info, settings.numerics)
    members = stack(in_order(read_members(logits))).float()
    pool, pooled = torch.zeros_like(own), torch.zeros(len(own), dtype=torch.bool)
    if before:
        known = load_tensors(before)[0]
        pool, pooled = known["pool"], known["pooled"]
    chosen = select(own, members, labels.cpu(), pool, pooled)
    tensors = {"labels": chosen.targets, "pool": chosen.pool, "pooled": chosen.pooled}
    save_tensors(output, tensors, {"round": round})
