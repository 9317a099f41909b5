"""From members' logits to a student's targets: the ensemble's average, then the transfer's own."""

from collections.abc import Sequence

import torch

from fedstage.algorithm.ensemble_trainers import Members, in_order, stack, teacher_logits
from fedstage.algorithm.global_trainers.transfers import targets_of
from fedstage.settings.teaching import EnsembleTeaching


def targets_from(teaching: EnsembleTeaching, members: Sequence[Members]) -> torch.Tensor:
    """Return the targets of each public sample, [n, ...]."""
    ordered = in_order(members)
    teacher = teacher_logits(teaching.ensemble, ordered)
    return targets_of(teaching, teacher, stack(ordered).float())
