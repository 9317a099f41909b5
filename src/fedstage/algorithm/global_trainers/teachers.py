"""Members of an ensemble as models, for students whose teachers predict augmented images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fedstage.algorithm.exchange.updates import answered, read_updates
from fedstage.errors import FedstageError
from fedstage.models.loading import fill_model, new_model
from fedstage.protocol.groups import model_of
from fedstage.protocol.teaching import teaching_of
from fedstage.settings.recipes import Recipe
from fedstage.storage.tensors import load_tensors


@dataclass(frozen=True)
class Teacher:
    """A member of an ensemble: a frozen model that uses its running statistics.

    `clients` has the client that trained it, and none for an average.
    """

    round: int
    group: int
    samples: int
    model: nn.Module
    clients: tuple[int, ...] = ()


def read_teachers(
    recipe: Recipe, paths: Sequence[Path], info: Mapping[str, Any], device: torch.device
) -> list[Teacher]:
    """Read the models of all members; clients that diverged are left out.

    Raises
    ------
    FedstageError
        If no member is left.
    """
    if teaching_of(recipe).ensemble.members == ("clients",):
        updates = answered(read_updates(paths))
        read = [(update.path, update.weights, update.metadata) for update in updates]
    else:
        read = [(path, *load_tensors(path)) for path in paths]
    if paths and not read:
        raise FedstageError(f"{paths[0]}: no member of the ensemble is left, all diverged")
    teachers = []
    for path, weights, metadata in read:
        model = new_model(model_of(recipe, metadata["group"]), dict(info), device, recipe.numerics)
        fill_model(model, weights, path)
        place = metadata["round"], metadata["group"]
        model.eval().requires_grad_(False)
        clients = (metadata["client"],) if "client" in metadata else ()
        teachers.append(Teacher(*place, metadata["samples"], model, clients))
    return teachers
