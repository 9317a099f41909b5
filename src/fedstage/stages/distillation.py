"""Stages of distillation: an averaged model w_{t,k} learns from an ensemble.

The ensemble is given by its logits or its models; without its worst clients (`judged`), by kept
labels, or on images that the server generates (`data_free`).
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from fedstage.algorithm.ensemble_trainers import Members, read_members
from fedstage.algorithm.exchange.updates import read_updates
from fedstage.algorithm.global_trainers.data_free import counts_of, learn_without_data, trained_by
from fedstage.algorithm.global_trainers.drop_worst import average_of_kept, fused
from fedstage.algorithm.global_trainers.lesson import kept_lesson, lesson, live_targets, of_round
from fedstage.algorithm.global_trainers.student import Taught
from fedstage.algorithm.global_trainers.students import (
    Student,
    learn,
    read_public_samples,
    read_student,
)
from fedstage.algorithm.global_trainers.teachers import Teacher, read_teachers
from fedstage.data.label_counts import read_counts
from fedstage.data.samples import read_labelled
from fedstage.models.loading import state_of
from fedstage.plan.inputs import (
    DataFreeDistillationInputs,
    DistillationInputs,
    JudgedDistillationInputs,
    LabelDistillationInputs,
    StudentInputs,
)
from fedstage.protocol.teaching import teaching_of
from fedstage.settings.recipes import Recipe
from fedstage.stages import Made
from fedstage.stages.inputs import begin
from fedstage.storage.tensors import save_tensors


def _taught(
    student: Student,
    read: StudentInputs[Path],
    members: Sequence[Members],
    models: Sequence[Teacher] = (),
) -> Taught:
    """Return what a student learns about public samples from logits, or else from models."""
    recipe, round_ = student.config, student.round
    images, labels = read_public_samples(student, read)
    if members:
        return lesson(recipe, members, images, round_, labels)
    return of_round(recipe, Taught(images, None, labels, live_targets(recipe, models)), round_)


def distillation(
    recipe: Recipe, read: DistillationInputs[Path], *, round_: int, group: int, output: Path
) -> None:
    """Distil an ensemble, given by its members' logits, their models or both.

    Models see the student's images, or provide their features. `distillation` sets what is learnt.
    """
    device, info = begin(recipe, read.info)
    student = read_student(recipe, read.start, round_, group, info, device)
    models = read_teachers(recipe, read.members, info, device)
    taught = _taught(student, read, read_members(read.logits, read.odds), models)
    save_tensors(output, *learn(student, taught, read.server_validation, models))


def judged_distillation(
    recipe: Recipe, read: JudgedDistillationInputs[Path], *, round_: int, group: int, output: Path
) -> None:
    """Distil the clients that the server's labelled images do not reject, into their average."""
    device, info = begin(recipe, read.info)
    _, truth = read_labelled(read.server_validation, None, torch.device("cpu"))
    kept = fused(read_members(read.judged), truth, teaching_of(recipe).server.drop_worst)
    student = read_student(recipe, read.start, round_, group, info, device)
    received, averaged = read_updates(read.updates), kept.averaged.get(group, [])
    student = replace(
        student,
        weights=average_of_kept(student.weights, received, averaged, recipe.aggregation),
        metadata=student.metadata | {"dropped": kept.dropped},
    )
    models = kept.models(read_teachers(recipe, read.members, info, device))
    taught = _taught(student, read, kept.members(read_members(read.logits)), models)
    save_tensors(output, *learn(student, taught, read.server_validation, models))


def label_distillation(
    recipe: Recipe, read: LabelDistillationInputs[Path], *, round_: int, group: int, output: Path
) -> None:
    """Teach the server's model the labels of the stages `cached_labels` or `selected_labels`."""
    device, info = begin(recipe, read.info)
    student = read_student(recipe, read.start, round_, group, info, device)
    images, labels = read_public_samples(student, read)
    taught = kept_lesson(recipe, read.labels, images, round_, labels)
    save_tensors(output, *learn(student, taught, read.server_validation))


def data_free_distillation(
    recipe: Recipe, read: DataFreeDistillationInputs[Path], made: Made, *, round_: int, group: int
) -> None:
    """Train a student and the generator of its images in turn; write both."""
    device, info = begin(recipe, read.info)
    student = read_student(recipe, read.start, round_, group, info, device)
    live = read_teachers(recipe, read.members, info, device)
    behind = [trained_by(one) for one in read.participants] or [one.clients for one in live]
    counts = counts_of(behind, read_counts(read.histogram), int(info["classes"]))
    model = student.model()
    generator, learnt = learn_without_data(student, model, live, counts, read.generator)
    save_tensors(made["new_generator"], state_of(generator), {"round": round_, "group": group})
    save_tensors(made["output"], state_of(model), student.metadata | learnt)
