"""What there is to learn of public samples, from the logits of an ensemble's members."""

from collections.abc import Sequence

import torch

from fedstage.algorithm.ensemble_trainers import Members, in_order, stack, teacher_logits
from fedstage.algorithm.global_trainers.transfers import transfer
from fedstage.settings.lines import Line


def targets_from(line: Line, members: Sequence[Members]) -> torch.Tensor:
    """Return what is to learn of each public sample, [n, ...]."""
    assert line.ensemble is not None, "checked by Line: what is taught has an ensemble"
    ordered = in_order(members)
    teacher = teacher_logits(line.ensemble, ordered)
    how = transfer(line.distillation)
    return how.targets(line.distillation, teacher, stack(ordered).float())
