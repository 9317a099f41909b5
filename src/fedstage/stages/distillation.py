"""Stage `distillation`: an averaged model w_{t,k} learns from an ensemble's logits."""

from pathlib import Path

from fedstage.algorithm.ensemble_trainers import read_members
from fedstage.algorithm.global_trainers.lesson import lesson
from fedstage.algorithm.global_trainers.students import learn, read_public_samples, read_student
from fedstage.plan.inputs import DistillationInputs
from fedstage.settings.lines import Line
from fedstage.stages.inputs import begin
from fedstage.storage.tensors import save_tensors


def distillation(
    config: Line, read: DistillationInputs[Path], *, round: int, group: int, output: Path
) -> None:
    """Distil the ensemble whose members' logits are given; `distillation` sets what is learnt."""
    device, info = begin(config, read.info)
    student = read_student(config, read.start, round, group, info, device)
    images, labels = read_public_samples(student, read.public)
    taught = lesson(config, read_members(read.logits, read.odds), images, round, labels)
    save_tensors(output, *learn(student, taught, read.server_validation))
