"""Stage `live_distillation`: an averaged model w_{t,k} learns from the ensemble's models."""

from pathlib import Path

from fedstage.algorithm.ensemble_trainers import read_members
from fedstage.algorithm.global_trainers.lesson import lesson, live_targets, of_round
from fedstage.algorithm.global_trainers.student import Taught
from fedstage.algorithm.global_trainers.students import learn, read_public_samples, read_student
from fedstage.algorithm.global_trainers.teachers import read_teachers
from fedstage.plan.inputs import LiveDistillationInputs
from fedstage.settings.recipes import Recipe
from fedstage.stages.inputs import begin
from fedstage.storage.tensors import save_tensors


def live_distillation(
    recipe: Recipe, read: LiveDistillationInputs[Path], *, round_: int, group: int, output: Path
) -> None:
    """Distil an ensemble whose members see the student's images, or provide their features."""
    device, info = begin(recipe, read.info)
    student = read_student(recipe, read.start, round_, group, info, device)
    teachers = read_teachers(recipe, read.members, info, device)
    images, labels = read_public_samples(student, read.public)
    if read.logits:
        taught = lesson(recipe, read_members(read.logits), images, round_, labels)
    else:
        whole = Taught(images, None, labels, live_targets(recipe, teachers))
        taught = of_round(recipe, whole, round_)
    save_tensors(output, *learn(student, taught, read.server_validation, teachers))
