"""What a round's ensemble teaches: public samples, and what a student is to learn about them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from fedstage.algorithm.ensemble_trainers import (
    Members,
    in_order,
    read_members,
    stack,
    teacher_logits,
)
from fedstage.algorithm.exchange.public_samples import samples_of
from fedstage.algorithm.global_trainers.objective import LiveTargets
from fedstage.algorithm.global_trainers.student import Taught
from fedstage.algorithm.global_trainers.targets import targets_from
from fedstage.algorithm.global_trainers.teachers import Teacher
from fedstage.algorithm.global_trainers.transfers import transfer
from fedstage.data.bags import Samples
from fedstage.settings.exchange import caches_labels, receives_server_logits
from fedstage.settings.lines import Line
from fedstage.settings.numerics import Numerics
from fedstage.storage.tensors import load_tensors
from fedstage.training.passes import forward


def lesson(
    line: Line,
    members: Sequence[Members],
    images: Samples,
    round: int,
    labels: torch.Tensor | None = None,
) -> Taught:
    """Return the public samples of a round, and targets on their device.

    All students of the round, on the server and on clients, have the same. Public samples may have
    `labels` [n].
    """
    targets = targets_from(line, members).to(images.device)
    return of_round(line, Taught(images, targets, labels), round)


def read_lesson(
    line: Line,
    said: Sequence[Path],
    images: Samples,
    round: int,
    labels: torch.Tensor | None = None,
) -> Taught:
    """Return a round's `lesson` from the files of what was said, or of what is kept of it."""
    if not (caches_labels(line) or receives_server_logits(line)):
        return lesson(line, read_members(said), images, round, labels)
    targets = load_tensors(said[0])[0]["labels"].to(images.device)
    return of_round(line, Taught(images, targets, labels), round)


def of_round(line: Line, whole: Taught, round: int) -> Taught:
    """Return a lesson on the samples of a round, of one on all of them."""
    drawn = samples_of(line, len(whole.images), round)
    if drawn is None:
        return whole
    drawn = drawn.to(whole.images.device)
    return replace(
        whole,
        images=whole.images[drawn],
        targets=None if whole.targets is None else whole.targets[drawn],
        labels=None if whole.labels is None else whole.labels[drawn],
    )


def live_targets(line: Line, teachers: Sequence[Teacher]) -> LiveTargets:
    """Return the function from pixels to the targets of the line's ensemble and `distillation`."""
    assert line.ensemble is not None, "checked by Line: a global trainer has an ensemble"
    ensemble, how = line.ensemble, transfer(line.distillation)
    (kind,) = ensemble.members  # nobody is drawn

    @torch.no_grad()
    def targets_of(pixels: torch.Tensor) -> torch.Tensor:
        members = in_order(logits_of(teachers, kind, pixels, line.numerics))
        logits = teacher_logits(ensemble, members)
        return how.targets(line.distillation, logits, stack(members).float())

    return targets_of


def logits_of(
    teachers: Sequence[Teacher], kind: str, pixels: torch.Tensor, numerics: Numerics
) -> list[Members]:
    """Return the members' logits of a batch, each by itself and in the order of `teachers`."""
    return [
        Members(
            one.round, one.group, forward(one.model, pixels, numerics)[None], (one.samples,), kind
        )
        for one in teachers
    ]
