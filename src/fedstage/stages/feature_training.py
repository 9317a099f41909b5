"""Stage `feature_training`: the server's model learns from features of clients' samples."""

from collections.abc import Iterator
from pathlib import Path

import torch

from fedstage.algorithm.exchange.updates import Update, answered, read_updates
from fedstage.algorithm.global_trainers.features import Upload, train_server, upload
from fedstage.data.samples import read_labelled, read_samples
from fedstage.models.loading import fill_model, new_model
from fedstage.settings.groups import model_of
from fedstage.settings.lines import Line
from fedstage.stages.inputs import Info, begin, load_model
from fedstage.storage.tensors import load_tensors, save_tensors


def feature_training(
    *,
    line: Path,
    round: int,
    group: int,
    start: Path,
    updates: list[Path],
    data: Path,
    clients: Path,
    info: Path,
    output: Path,
) -> None:
    """Train the server's model `start` on what the participants of a round send.

    Clients and server stand on one machine here, so that the features, of which there are many, are
    computed from the updates and the clients' samples and not stored. If no participant is left,
    the model stays as it is.

    Parameters
    ----------
    round, group : int
        The place of the result.
    updates : list of Path
        Of all participants, of all groups.
    """
    settings, device, dataset_info = begin(line, Line, info)
    received = answered(read_updates(updates))
    learnt: dict[str, float] = {}
    if received:
        uploads = list(_uploads(settings, received, data, clients, dataset_info, device))
        model = load_model(start, settings.model, dataset_info, device, settings.numerics)
        weights, learnt = train_server(model, uploads, settings, dataset_info, round)
    else:
        weights, _ = load_tensors(start)
    save_tensors(output, weights, {"round": round, "group": group} | learnt)


def _uploads(
    settings: Line,
    received: list[Update],
    data: Path,
    clients: Path,
    info: Info,
    device: torch.device,
) -> Iterator[Upload]:
    """Yield what each participant sends, in the order of slots."""
    for update in received:
        number = update.metadata["client"]
        chosen = read_samples(clients, "train", number)
        samples, labels = read_labelled(data, chosen, device, info)
        architecture = model_of(settings, update.metadata["group"])
        model = new_model(architecture, info, device, settings.numerics)
        fill_model(model, update.weights, update.path)
        yield upload(model, samples, labels, settings, info)
