"""The final models of a run, filled with their weights."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fedstage.data.samples import read_info
from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import Part, find_run
from fedstage.models.loading import fill_model, new_model
from fedstage.plan import data_files, one_shot, unfederated
from fedstage.plan.one_shot_sharing import local_recipe
from fedstage.plan.training import global_model
from fedstage.protocol.groups import model_of
from fedstage.protocol.one_shot import client_model, trained_on
from fedstage.settings.ensembles import GlobalModel
from fedstage.settings.models import Model
from fedstage.settings.recipes import LocalRecipe, Recipe
from fedstage.settings.scores import Axis
from fedstage.storage.tensors import load_tensors

CPU = torch.device("cpu")


def model(
    target: str,
    method: str,
    seed: int | None = None,
    *,
    at: Mapping[str, Axis] | None = None,
    which: str | None = None,
    folder: str | Path = ".",
) -> nn.Module:
    """Return a final model of a run, in eval mode on the CPU.

    It maps samples, images standardised, to logits [n, classes].

    Parameters
    ----------
    target, folder
        As for `fedstage.results.scores`.
    method : str
        The key of a method, such as ``feddf``.
    seed : int, optional
        By default the only one.
    at : mapping, optional
        Values on further axes, ``{"partition.alpha": 0.1}``, where the experiment has these.
    which : str, optional
        For a run in rounds, ``group_0`` (the main model, w*_{T,0}) to ``group_{K-1}``; for models
        without federation, ``client_0`` and so on, ``pooled`` or ``core``; for one-shot methods,
        ``student`` and the clients' models. By default the model that the run is scored by.

    Raises
    ------
    FedstageError
        If there is no such run or model, or if the run is not scored by a single model.
    """
    where, _, part = find_run(target, method, seed, at, Path(folder))
    known = final_models(part)
    name = which or scored_model(part)
    if name not in known:
        what = f"which = {name!r}: no such model" if name else "is scored by no single model"
        raise FedstageError(f"{where}: {what}; which is one of {', '.join(known)}")
    architecture, path = known[name]
    info = read_info(Path(folder) / data_files.info(part.recipe))
    return _filled(architecture, Path(folder) / path, info)


def final_models(part: Part) -> dict[str, tuple[Model, str]]:
    """Return the architecture and file of each final model of a run, by name."""
    recipe = part.recipe
    if isinstance(recipe, Recipe):
        rounds = part.length.rounds
        return {
            f"group_{group}": (model_of(recipe, group), global_model(recipe, rounds, group))
            for group in range(recipe.global_models)
        }
    if isinstance(recipe, LocalRecipe):
        return _local_models(recipe)
    clients = _local_models(local_recipe(recipe))
    if recipe.distillation is None:
        return clients
    return {"student": (recipe.student or recipe.model, one_shot.student_file(recipe)), **clients}


def _local_models(recipe: LocalRecipe) -> dict[str, tuple[Model, str]]:
    """Return the models of a recipe before they are quantised."""
    paths = unfederated.local_models(recipe)
    if who := trained_on(recipe):
        return {who: (recipe.model, paths[0])}
    return {f"client_{i}": (client_model(recipe, i), path) for i, path in enumerate(paths)}


def scored_model(part: Part) -> str | None:
    """Return the name of the model that a run is scored by.

    None if there are several, or if the model is in 8 bits.
    """
    recipe, length = part.recipe, part.length
    if isinstance(recipe, Recipe):
        return "group_0" if isinstance(length.evaluate, GlobalModel) else None
    if isinstance(recipe, LocalRecipe):
        if recipe.quantisation.name != "none":
            return None
        if length.evaluate_client is not None:
            return f"client_{length.evaluate_client}"
        return trained_on(recipe)
    return None if recipe.distillation is None else "student"


def _filled(architecture: Model, path: Path, info: dict[str, Any]) -> nn.Module:
    network = new_model(architecture, info, CPU)
    fill_model(network, load_tensors(path)[0], path)
    return network.eval()
