"""What a distillation did: how often a student predicts what its teacher does, before and after."""

import logging
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from fedstage.algorithm.global_trainers.student import Taught
from fedstage.data.bags import Samples
from fedstage.settings.numerics import Numerics
from fedstage.settings.server import Server
from fedstage.training.passes import compute_logits, normalised_batches

_LOGGER = logging.getLogger(__name__)

PERCENT = 100.0
#: Public samples that are compared at most, evenly spread, so that training takes longer by little.
COMPARED = 2_000
#: Percent of predictions: a student that changes fewer has learnt next to nothing.
LEAST = 0.1


def public_logits(
    model: nn.Module, lesson: Taught, info: Mapping[str, Any], numerics: Numerics
) -> torch.Tensor:
    """Return a student's logits [m, C] of the compared samples of its lesson, unaugmented."""
    logits = compute_logits(model, lesson.images[_compared(lesson.images)], info, numerics)
    model.train()
    return logits


def _compared(images: Samples) -> torch.Tensor:
    step = -(-len(images) // COMPARED)
    return torch.arange(0, len(images), step, device=images.device)


def tell(
    lesson: Taught,
    before: torch.Tensor,
    after: torch.Tensor,
    server: Server,
    info: Mapping[str, Any],
    place: Mapping[str, int],
    *,
    warns: bool,
) -> None:
    """Log how a student has changed, for people and, as `distilled`, for the record of the job.

    Parameters
    ----------
    before, after : torch.Tensor
        The student's `public_logits` before and after it learnt the lesson.
    place : mapping
        The round, and where there are several students, the group.
    warns : bool
        Whether it is worth a warning that hardly any prediction has changed.
    """
    was, now, teacher = before.argmax(1), after.argmax(1), _taught(lesson, before.shape[1], info)
    changed, count = int((was != now).sum()), len(now)
    said: dict[str, float] = {"samples": count, "changed": PERCENT * changed / count}
    text = f"distillation changed {changed} of {count} predictions on public samples"
    if teacher is not None:
        said["agreement_before"] = PERCENT * int((was == teacher).sum()) / count
        said["agreement"] = PERCENT * int((now == teacher).sum()) / count
        text += (
            f"; student and teacher agree on {said['agreement']:.2f} %, "
            f"before on {said['agreement_before']:.2f} %"
        )
    level = logging.INFO
    if warns and said["changed"] < LEAST:
        level = logging.WARNING
        text += f"; server.learning_rate = {server.learning_rate:g} may be too low"
    where = ", ".join(f"{name} {number}" for name, number in place.items())
    _LOGGER.log(level, "%s: %s", where, text, extra={"distilled": {**place, **said}})


def _taught(lesson: Taught, classes: int, info: Mapping[str, Any]) -> torch.Tensor | None:
    """Return the teacher's classes of the compared samples, if the lesson's targets tell them."""
    chosen = _compared(lesson.images)
    if lesson.live is None:
        assert lesson.targets is not None, "what is not live is cached"
        targets = lesson.targets[chosen].cpu()
    else:
        batches = normalised_batches(lesson.images[chosen], info)
        targets = torch.cat([lesson.live(batch).cpu() for batch in batches])
    return taught_classes(targets, classes)


def taught_classes(targets: torch.Tensor, classes: int) -> torch.Tensor | None:
    """Return the classes int64 [n] of targets, by the rule of `TransferModule.targets`."""
    if targets.dim() == 1:
        return targets
    if targets.dim() > 2 or targets.shape[1] < classes:
        return None
    return targets.argmax(1) if targets.shape[1] == classes else targets[:, 0].long()
