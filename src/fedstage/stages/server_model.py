"""Stages that teach without public samples: from features of clients' samples, or by heads."""

from collections.abc import Iterator
from pathlib import Path

import torch

from fedstage.algorithm.aggregation.averages import average_weights
from fedstage.algorithm.exchange.updates import Update, answered, part, read_updates
from fedstage.algorithm.global_trainers.features import Upload, train_server, upload
from fedstage.models.heads import HEAD
from fedstage.models.loading import fill_model, new_model
from fedstage.plan.inputs import FeatureTrainingInputs, HeadSharingInputs
from fedstage.protocol.groups import model_of
from fedstage.settings.recipes import Recipe
from fedstage.stages.inputs import Info, begin, load_model, read_own
from fedstage.storage.tensors import load_tensors, open_tensors, save_tensors
from fedstage.weights import Weights

_UPDATE = "model/"


def feature_training(
    recipe: Recipe, read: FeatureTrainingInputs[Path], *, round_: int, group: int, output: Path
) -> None:
    """Train the server's model `start` on what the participants of a round send.

    Clients and server are on one machine here. The features, which are large, are therefore not
    stored but computed from the updates and the clients' samples. If no participant is left, the
    model stays unchanged.
    """
    device, info = begin(recipe, read.info)
    received = answered(read_updates(read.updates))
    learnt: dict[str, float] = {}
    if received:
        uploads = list(_uploads(recipe, received, read, info, device))
        model = load_model(read.start, recipe.model, info, device, recipe.numerics)
        weights, learnt = train_server(model, uploads, recipe, info, round_)
    else:
        weights, _ = load_tensors(read.start)
    save_tensors(output, weights, {"round": round_, "group": group} | learnt)


def _uploads(
    recipe: Recipe,
    received: list[Update],
    read: FeatureTrainingInputs[Path],
    info: Info,
    device: torch.device,
) -> Iterator[Upload]:
    """Yield what each participant sends, in the order of participants."""
    for update in received:
        client = update.metadata["client"]
        samples, labels = read_own(read.data, read.clients, client, device, info)
        architecture = model_of(recipe, update.metadata["group"])
        model = new_model(architecture, info, device, recipe.numerics)
        fill_model(model, update.weights, update.path)
        yield upload(model, samples, labels, recipe, info)


def head_sharing(
    recipe: Recipe, read: HeadSharingInputs[Path], *, round_: int, group: int, output: Path
) -> None:
    """Write a model with the plain mean of the heads of others, H = 1/m sum_k h_k (Fed-ET).

    On the way up these are the participants' heads (section 3.2, step 1), on the way down the head
    of the server's model (step 3). Absent participants and dropped updates have none; if there is
    none, the model keeps its own.
    """
    weights, metadata = load_tensors(read.model)
    others = [head for head in map(_head_of, read.heads) if head]
    if others:
        weights = weights | average_weights(others, [1.0] * len(others))
    save_tensors(output, weights, metadata | {"round": round_, "group": group})


def _head_of(path: Path) -> Weights:
    """Return the tensors of a model's head, or an update's; empty if it was dropped."""
    tensors, _ = open_tensors(path)
    model = part(tensors, _UPDATE) or tensors
    return {name: model[name] for name in model if name.startswith(f"{HEAD}.")}
