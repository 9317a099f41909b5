"""Predictions of ensemble members, and labels of public samples that are made of them."""

from pathlib import Path
from typing import Any

import torch

from fedstage.algorithm.ensemble_trainers import in_order, read_members, stack
from fedstage.algorithm.ensemble_trainers.sampling import draw
from fedstage.algorithm.exchange.caching import after_round
from fedstage.algorithm.exchange.updates import answered, place_of, read_updates
from fedstage.algorithm.global_trainers.selection import select
from fedstage.algorithm.global_trainers.transfers import targets_from
from fedstage.data.samples import read_labelled
from fedstage.models.heads import joined
from fedstage.models.loading import fill_model, new_model, parameter_names
from fedstage.plan.inputs import CachedLabelsInputs, LogitsInputs, SelectedLabelsInputs
from fedstage.plan.members import parse_sampled
from fedstage.protocol.groups import model_of
from fedstage.protocol.teaching import teaching_of
from fedstage.settings.ensembles import Bayesian
from fedstage.settings.recipes import Recipe
from fedstage.stages.inputs import Info, begin, load_model, read_unlabelled
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.training.passes import compute_logits
from fedstage.weights import Tensors


def logits(recipe: Recipe, read: LogitsInputs[Path], *, members: str, output: Path) -> None:
    """Write logits [members, n, classes] with each member's number of training samples.

    Parameters
    ----------
    members : str
        ``aggregated``: `models` is w_{t,k}; ``clients``: `models` are the updates of the group; a
        kind such as ``gaussian_10``: models drawn from these updates, with `aggregated` w_{t,k} and
        `start` the model that the round started from; ``split``: the extractors of the models of
        ``clients`` followed by `server_model`.
    """
    device, info = begin(recipe, read.info)
    images = read_unlabelled(read.data, read.clients, "validation", info, device)
    drawn = parse_sampled(members)
    if drawn is None:
        weighted, metadata = _read_members(members, read.models)
    else:
        weighted, metadata = _draw_members(recipe, drawn, read, info)
    architecture = model_of(recipe, metadata["group"])
    model = new_model(architecture, info, device, recipe.numerics)
    asked = model
    if read.server_model is not None:
        behind = (read.server_model, recipe.model, info, device, recipe.numerics)
        asked = joined(model, load_model(*behind))
    outputs = []
    for path, weights in weighted:
        fill_model(model, weights, path)
        outputs.append(compute_logits(asked, images, info, recipe.numerics))
    none = torch.empty(0, len(images), info["classes"])
    stacked = torch.stack(outputs) if outputs else none
    save_tensors(output, {"logits": stacked}, metadata | {"members": members})


def _read_members(
    members: str, paths: list[Path]
) -> tuple[list[tuple[Path, Tensors]], dict[str, Any]]:
    """Return the members' weights with their files, and the metadata of their logits."""
    if members == "aggregated":
        weights, metadata = load_tensors(paths[0])
        return [(paths[0], weights)], metadata | {"samples": [metadata["samples"]]}
    valid = answered(read_updates(paths))
    samples = [update.metadata["samples"] for update in valid]
    whose = [update.metadata["client"] for update in valid]
    members_of_group = [(update.path, update.weights) for update in valid]
    return members_of_group, place_of(paths[0]) | {"samples": samples, "clients": whose}


def _draw_members(
    recipe: Recipe, drawn: Bayesian, read: LogitsInputs[Path], info: Info
) -> tuple[list[tuple[Path, Tensors]], dict[str, Any]]:
    """Return models drawn from the clients' distribution; none if all clients diverged.

    Each has the file of the averaged model, and counts for the training samples of all clients.
    """
    assert read.aggregated is not None, "the graph gives it to members that are drawn"
    valid = answered(read_updates(read.models))
    mean, metadata = load_tensors(read.aggregated)
    if not valid:
        return [], metadata | {"samples": []}
    uniform = recipe.aggregation.weights == "uniform"
    models = draw(
        drawn,
        [update.weights for update in valid],
        [1.0 if uniform else float(update.metadata["samples"]) for update in valid],
        mean,
        load_tensors(read.start)[0] if read.start else None,
        parameter_names(model_of(recipe, metadata["group"]), info),
        (recipe.seed, "logits", metadata["round"], metadata["group"]),
    )
    samples = [metadata["samples"]] * len(models)
    return [(read.aggregated, model) for model in models], metadata | {"samples": samples}


def cached_labels(
    recipe: Recipe, read: CachedLabelsInputs[Path], *, round_: int, output: Path
) -> None:
    """Write the targets of each public sample, ``labels`` [n, ...].

    For samples that clients are asked for in this round, targets follow from the clients' logits,
    by the run's `ensemble` and `distillation`. For other samples they stay unchanged, and are zero
    before the first time.
    """
    new = targets_from(teaching_of(recipe), read_members(read.logits))
    asked, _ = after_round(recipe, len(new), round_)
    labels = load_tensors(read.before)[0]["labels"] if read.before else torch.zeros_like(new)
    labels[asked] = new[asked]
    save_tensors(output, {"labels": labels}, {"round": round_, "asked": len(asked)})


def selected_labels(
    recipe: Recipe, read: SelectedLabelsInputs[Path], *, round_: int, output: Path
) -> None:
    """Write ``labels`` [n, 2 + C] of the `fedgems` loss, and ``pool`` [n, C] with ``pooled``."""
    device, info = begin(recipe, read.info)
    images, labels = read_labelled(read.public, None, device, info)
    model = load_model(read.start, recipe.model, info, device, recipe.numerics)
    own = compute_logits(model, images, info, recipe.numerics)
    members = stack(in_order(read_members(read.logits))).float()
    pool, pooled = torch.zeros_like(own), torch.zeros(len(own), dtype=torch.bool)
    if read.before:
        known = load_tensors(read.before)[0]
        pool, pooled = known["pool"], known["pooled"]
    chosen = select(own, members, labels.cpu(), pool, pooled)
    tensors = {"labels": chosen.targets, "pool": chosen.pool, "pooled": chosen.pooled}
    save_tensors(output, tensors, {"round": round_})
