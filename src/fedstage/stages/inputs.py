"""Inputs of the stages that compute with a model: settings, data, logits and the model itself."""

from collections import defaultdict
from operator import itemgetter
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fedstage.data.bags import Samples
from fedstage.data.samples import (
    read_counts,
    read_images,
    read_info,
    read_labelled,
    read_public,
    read_samples,
    read_test_clients,
)
from fedstage.models.loading import fill_model, new_model
from fedstage.plan.inputs import ClientsInputs, SamplesInputs, ScoredInputs
from fedstage.settings.numerics import Numerics
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import LocalRecipe, Recipe
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import load_tensors
from fedstage.training.devices import prepare

Info = dict[str, Any]


def begin(recipe: Recipe | LocalRecipe | OneShotRecipe, info: Path) -> tuple[torch.device, Info]:
    """Prepare and return the device of a configuration, with the info of its data set."""
    return prepare(recipe.numerics), read_info(info)


def read_scored(
    recipe: Recipe | LocalRecipe | OneShotRecipe,
    read: ScoredInputs[Path],
    role: str,
    device: torch.device,
    info: Info,
) -> tuple[Samples, torch.Tensor, dict[int, dict[int, int]], torch.Tensor | None]:
    """Return samples that models are scored on, and what their scores need.

    These are all samples of `data`, or its samples of the role ``validation``, with their labels,
    the class counts of clients' training samples, and the `read_test_clients` of tested samples.
    All but the samples are on the CPU.
    """
    validates = role == "validation"
    chosen = read_samples(read.clients, role) if validates else None
    samples, labels = read_labelled(read.data, chosen, device, info)
    owners = None
    if not validates:
        owners = read_test_clients(read.data, recipe.partition.name, recipe.clients)
    return samples, labels.cpu(), read_counts(read.histogram), owners


def read_own(
    read: ClientsInputs[Path], client: int, device: torch.device, info: Info
) -> tuple[Samples, torch.Tensor]:
    """Return the training samples and labels of a client."""
    return read_labelled(read.data, read_samples(read.clients, "train", client), device, info)


def read_participants(paths: list[Path]) -> dict[int, list[dict[str, Any]]]:
    """Return the participants of each round, by group and participant."""
    rows: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for path in paths:
        for row in load_table(path).to_pylist():
            rows[row["round"]].append(row)
    for together in rows.values():
        together.sort(key=itemgetter("group", "participant"))
    return rows


def read_unlabelled(
    read: SamplesInputs[Path], role: str, info: Info, device: torch.device
) -> Samples:
    """Return public images, or with the partition `clients` their samples of a role."""
    if read.clients is None:
        return read_public(read.data, info, device)
    return read_images(read.data, read_samples(read.clients, role), device)[0]


def stack_logits(paths: list[Path], device: torch.device) -> torch.Tensor:
    """Return the logits [members, n, classes] of the files of single models."""
    return torch.stack([load_tensors(path)[0]["logits"] for path in paths]).to(device)


def load_model(
    path: Path, architecture: Any, info: Info, device: torch.device, numerics: Numerics
) -> nn.Module:
    """Return a model with the weights of a file."""
    model = new_model(architecture, info, device, numerics)
    fill_model(model, load_tensors(path)[0], path)
    return model
