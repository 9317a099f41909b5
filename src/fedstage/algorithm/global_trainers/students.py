"""The students of a round: w_{t,k} learns the round's lesson and becomes w*_{t,k}.

A lesson is the round's public samples, with the targets of a student for each.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fedstage.algorithm.ensemble_trainers import Members, read_members
from fedstage.algorithm.exchange.public_samples import samples_of
from fedstage.algorithm.global_trainers.agreement import public_logits, tell
from fedstage.algorithm.global_trainers.objective import LiveTargets
from fedstage.algorithm.global_trainers.student import Taught, teach
from fedstage.algorithm.global_trainers.teachers import Teacher
from fedstage.algorithm.global_trainers.transfers import loss_of, targets_from
from fedstage.data.bags import Samples
from fedstage.data.samples import read_labelled, read_public, tell_private
from fedstage.models.loading import fill_model, new_model
from fedstage.plan.inputs import StudentInputs
from fedstage.protocol.exchange import caches_labels
from fedstage.protocol.groups import model_of
from fedstage.protocol.rounds import first_distillation
from fedstage.protocol.server import without_early_buffer
from fedstage.protocol.teaching import goes_on, students, teaching_of
from fedstage.settings.numerics import Numerics
from fedstage.settings.recipes import Recipe
from fedstage.settings.server import Server
from fedstage.storage.tensors import load_tensors
from fedstage.training.passes import Loss, forward
from fedstage.weights import Weights

# --- lessons --------------------------------------------------------------------------------------


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


# --- students -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Student:
    """A student before it learns: its place, weights and the metadata that it keeps."""

    config: Recipe
    round: int
    group: int
    start: Path
    weights: Weights
    metadata: dict[str, Any]
    info: dict[str, Any]
    device: torch.device

    def model(self) -> nn.Module:
        """Return the student as a model, with the weights that it starts from."""
        architecture = model_of(self.config, self.group)
        model = new_model(architecture, self.info, self.device, self.config.numerics)
        fill_model(model, self.weights, self.start)
        return model

    def is_first(self) -> bool:
        """Whether it is the first of a run, which speaks for the others."""
        first = first_distillation(self.config), min(students(self.config))
        return (self.round, self.group) == first


def read_student(
    recipe: Recipe, start: Path, round_: int, group: int, info: dict[str, Any], device: torch.device
) -> Student:
    """Read what a student starts from: w_{t,k}, or the model of the previous round."""
    weights, metadata = load_tensors(start)
    if goes_on(recipe):
        metadata = {}  # of another round, or of the run's initial model
    # The server's own model starts from the previous round's.
    place = {"round": round_, "group": group}
    return Student(recipe, round_, group, start, weights, metadata | place, info, device)


def read_public_samples(
    student: Student, read: StudentInputs[Path]
) -> tuple[Samples, torch.Tensor | None]:
    """Return the public samples, and their labels where the student learns these, too."""
    labelled = teaching_of(student.config).server.labels
    images = read_public(read.public, student.info, student.device)
    labels = read_labelled(read.public, None, student.device)[1] if labelled else None
    if student.is_first():
        tell_private(images, read.data, read.clients)
    return images, labels


def learn(
    student: Student,
    taught: Taught,
    server_validation: Path | None,
    teachers: Sequence[Teacher] = (),
) -> tuple[Weights, dict[str, Any]]:
    """Return a student's weights and metadata after it has learnt what a round teaches.

    Raises
    ------
    FedstageError
        If the student diverges.
    """
    config, place = student.config, (student.round, student.group)
    teaching, model = teaching_of(config), student.model()
    weights, learnt = teach_and_tell(
        model, taught, loss_of(teaching), without_early_buffer(teaching.server, student.round),
        config.numerics, student.info, (config.seed, "distillation", *place),
        f"distillation, round {student.round}, group {student.group}",
        teachers=teachers, server_validation=server_validation,
        told={"round": student.round, "group": student.group}, warns=student.is_first(),
    )  # fmt: skip
    return weights, student.metadata | learnt


def teach_and_tell(
    model: nn.Module,
    taught: Taught,
    loss: Loss,
    server: Server,
    numerics: Numerics,
    info: dict[str, Any],
    *how: Any,
    told: dict[str, int],
    warns: bool,
    **given: Any,
) -> tuple[Weights, dict[str, Any]]:
    """Do as `teach`, which takes `how` and `given`, and `tell` what has changed."""
    before = public_logits(model, taught, info, numerics)
    weights, learnt = teach(model, taught, loss, server, numerics, info, *how, **given)
    model.load_state_dict(weights)  # which training had before its last steps, if it stopped early
    after = public_logits(model, taught, info, numerics)
    tell(taught, before, after, server, info, told, warns=warns)
    return weights, learnt
