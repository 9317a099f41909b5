"""A round's public samples, with the targets of a student for each."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from fedstage.algorithm.ensemble_trainers import Members, read_members
from fedstage.algorithm.exchange.public_samples import samples_of
from fedstage.algorithm.global_trainers.objective import LiveTargets
from fedstage.algorithm.global_trainers.student import Taught
from fedstage.algorithm.global_trainers.teachers import Teacher
from fedstage.algorithm.global_trainers.transfers import targets_from
from fedstage.data.bags import Samples
from fedstage.protocol.exchange import caches_labels
from fedstage.protocol.teaching import teaching_of
from fedstage.settings.numerics import Numerics
from fedstage.settings.recipes import Recipe
from fedstage.storage.tensors import load_tensors
from fedstage.training.passes import forward


def lesson(
    recipe: Recipe,
    members: Sequence[Members],
    images: Samples,
    round_: int,
    labels: torch.Tensor | None = None,
) -> Taught:
    """Return the public samples of a round, and targets on their device.

    All students of the round, on the server and on clients, have the same lesson. Public samples
    may have `labels` [n].
    """
    targets = targets_from(teaching_of(recipe), members).to(images.device)
    return of_round(recipe, Taught(images, targets, labels), round_)


def read_lesson(recipe: Recipe, received: Sequence[Path], images: Samples, round_: int) -> Taught:
    """Return a round's `lesson` from the files of members' logits, or of labels made from them."""
    if caches_labels(recipe):
        return kept_lesson(recipe, received[0], images, round_)
    return lesson(recipe, read_members(received), images, round_)


def kept_lesson(
    recipe: Recipe, kept: Path, images: Samples, round_: int, labels: torch.Tensor | None = None
) -> Taught:
    """Return a round's `lesson` from the file of kept labels of public samples."""
    targets = load_tensors(kept)[0]["labels"].to(images.device)
    return of_round(recipe, Taught(images, targets, labels), round_)


def of_round(recipe: Recipe, whole: Taught, round_: int) -> Taught:
    """Return the part of a lesson on all public samples that a round uses."""
    drawn = samples_of(recipe, len(whole.images), round_)
    if drawn is None:
        return whole
    drawn = drawn.to(whole.images.device)
    return replace(
        whole,
        images=whole.images[drawn],
        targets=None if whole.targets is None else whole.targets[drawn],
        labels=None if whole.labels is None else whole.labels[drawn],
    )


def live_targets(recipe: Recipe, teachers: Sequence[Teacher]) -> LiveTargets:
    """Return the function that computes targets from pixels, by the ensemble and `distillation`."""
    teaching = teaching_of(recipe)
    (kind,) = teaching.ensemble.members  # none is drawn

    @torch.no_grad()
    def targets_of(pixels: torch.Tensor) -> torch.Tensor:
        return targets_from(teaching, logits_of(teachers, kind, pixels, recipe.numerics))

    return targets_of


def logits_of(
    teachers: Sequence[Teacher], kind: str, pixels: torch.Tensor, numerics: Numerics
) -> list[Members]:
    """Return the members' logits of a batch, each by itself and in the order of `teachers`."""
    members = []
    for teacher in teachers:
        logits = forward(teacher.model, pixels, numerics)[None]
        members.append(Members(teacher.round, teacher.group, logits, (teacher.samples,), kind))
    return members
