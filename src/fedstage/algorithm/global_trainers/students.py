"""The students of a round: w_{t,k} learns from the round's ensemble and becomes w*_{t,k}."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fedstage.algorithm.global_trainers.student import Taught, teach
from fedstage.algorithm.global_trainers.teachers import Teacher
from fedstage.algorithm.global_trainers.transfers import loss_of
from fedstage.data.bags import Samples
from fedstage.data.samples import read_labelled, read_public, tell_private
from fedstage.models.loading import fill_model, new_model
from fedstage.plan.inputs import StudentInputs
from fedstage.protocol.groups import model_of
from fedstage.protocol.rounds import first_distillation
from fedstage.protocol.server import without_early_buffer
from fedstage.protocol.teaching import goes_on, students, teaching_of
from fedstage.settings.recipes import Recipe
from fedstage.storage.tensors import load_tensors
from fedstage.weights import Weights


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
    config = student.config
    if (student.round, student.group) == (first_distillation(config), min(students(config))):
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
    teaching = teaching_of(config)
    weights, learnt = teach(
        student.model(),
        taught,
        loss_of(teaching),
        without_early_buffer(teaching.server, student.round),
        config.numerics,
        student.info,
        (config.seed, "distillation", *place),
        f"distillation, round {student.round}, group {student.group}",
        teachers=teachers,
        server_validation=server_validation,
    )
    return weights, student.metadata | learnt
