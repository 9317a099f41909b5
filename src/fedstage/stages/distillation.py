"""Stage `distillation`: an averaged model w_{t,k} learns from an ensemble's logits."""

from pathlib import Path

from fedstage.algorithm.ensemble_trainers import read_members
from fedstage.algorithm.global_trainers.lesson import lesson
from fedstage.algorithm.global_trainers.students import learn, read_public_samples, read_student
from fedstage.plan.inputs import DistillationInputs
from fedstage.settings.recipes import Recipe
from fedstage.stages.inputs import begin
from fedstage.storage.tensors import save_tensors


def distillation(
    recipe: Recipe, read: DistillationInputs[Path], *, round_: int, group: int, output: Path
) -> None:
    """Distil the ensemble whose members' logits are given; `distillation` sets what is learnt."""
    device, info = begin(recipe, read.info)
    student = read_student(recipe, read.start, round_, group, info, device)
    images, labels = read_public_samples(student, read.public)
    taught = lesson(recipe, read_members(read.logits, read.odds), images, round_, labels)
    save_tensors(output, *learn(student, taught, read.server_validation))
