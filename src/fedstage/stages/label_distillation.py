"""Stage `label_distillation`: the server's model learns the kept labels of public samples."""

from pathlib import Path

from fedstage.algorithm.global_trainers.lesson import kept_lesson
from fedstage.algorithm.global_trainers.students import learn, read_public_samples, read_student
from fedstage.plan.inputs import LabelDistillationInputs
from fedstage.settings.recipes import Recipe
from fedstage.stages.inputs import begin
from fedstage.storage.tensors import save_tensors


def label_distillation(
    recipe: Recipe, read: LabelDistillationInputs[Path], *, round_: int, group: int, output: Path
) -> None:
    """Teach the server's model the labels of the stages `cached_labels` or `selected_labels`."""
    device, info = begin(recipe, read.info)
    student = read_student(recipe, read.start, round_, group, info, device)
    images, labels = read_public_samples(student, read.public)
    taught = kept_lesson(recipe, read.labels, images, round_, labels)
    save_tensors(output, *learn(student, taught, read.server_validation))
