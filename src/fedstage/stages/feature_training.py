"""Stage `feature_training`: the server's model learns from features of clients' samples."""

from collections.abc import Iterator
from pathlib import Path

import torch

from fedstage.algorithm.exchange.updates import Update, answered, read_updates
from fedstage.algorithm.global_trainers.features import Upload, train_server, upload
from fedstage.models.loading import fill_model, new_model
from fedstage.plan.inputs import FeatureTrainingInputs
from fedstage.settings.groups import model_of
from fedstage.settings.recipes import Recipe
from fedstage.stages.inputs import Info, begin, load_model, read_own
from fedstage.storage.tensors import load_tensors, save_tensors


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
