"""Stage `data_free_distillation`: a student learns from images that the server generates."""

from pathlib import Path

from fedstage.algorithm.global_trainers.data_free import learn_without_data
from fedstage.algorithm.global_trainers.students import read_student
from fedstage.algorithm.global_trainers.teachers import read_teachers
from fedstage.data.label_counts import read_counts
from fedstage.models.loading import state_of
from fedstage.plan.inputs import DataFreeDistillationInputs
from fedstage.settings.recipes import Recipe
from fedstage.stages import Made
from fedstage.stages.inputs import begin
from fedstage.storage.tensors import save_tensors


def data_free_distillation(
    recipe: Recipe, read: DataFreeDistillationInputs[Path], made: Made, *, round_: int, group: int
) -> None:
    """Train a student and the generator of its images in turn; write both."""
    device, info = begin(recipe, read.info)
    student = read_student(recipe, read.start, round_, group, info, device)
    live = read_teachers(recipe, read.members, info, device)
    model, counts = student.model(), read_counts(read.histogram)
    generator, learnt = learn_without_data(
        recipe, model, live, counts, info, read.generator, round_, group
    )
    save_tensors(made["new_generator"], state_of(generator), {"round": round_, "group": group})
    save_tensors(made["output"], state_of(model), student.metadata | learnt)
