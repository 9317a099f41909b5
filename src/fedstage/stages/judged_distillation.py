"""Stage `judged_distillation`: FedDF's distillation without its worst clients."""

from dataclasses import replace
from pathlib import Path

import torch

from fedstage.algorithm.ensemble_trainers import read_members
from fedstage.algorithm.exchange.updates import read_updates
from fedstage.algorithm.global_trainers.drop_worst import average_of_kept, fused, teachers
from fedstage.algorithm.global_trainers.lesson import lesson
from fedstage.algorithm.global_trainers.students import learn, read_public_samples, read_student
from fedstage.data.samples import read_labelled
from fedstage.plan.inputs import JudgedDistillationInputs
from fedstage.settings.recipes import Recipe
from fedstage.settings.teaching import teaching_of
from fedstage.stages.inputs import begin
from fedstage.storage.tensors import save_tensors


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
    images, labels = read_public_samples(student, read.public)
    members = teachers(read_members(read.logits), kept.teaching)
    taught = lesson(recipe, members, images, round_, labels)
    save_tensors(output, *learn(student, taught, read.server_validation))
