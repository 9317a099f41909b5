"""Stage `local_model`: one client trained alone, or all their data pooled, to the end."""

from pathlib import Path

from fedstage.data.samples import (
    fill_model,
    new_model,
    read_info,
    read_labelled,
    read_line,
    read_samples,
    state_of,
)
from fedstage.errors import FedstageError
from fedstage.plan.sharing import client_model
from fedstage.randomness import torch_generator
from fedstage.settings.lines import LocalLine
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.training.batches import client_batches
from fedstage.training.devices import prepare
from fedstage.training.loop import train
from fedstage.training.losses import client_loss


def local_model(
    *,
    line: Path,
    client: int | None = None,
    data: Path,
    info: Path,
    clients: Path,
    start: Path,
    output: Path,
) -> None:
    """Train on the training samples of `client`, or of all clients, from the initial model.

    Raises
    ------
    FedstageError
        If training diverges: names the client and the step.
    """
    settings = read_line(line, LocalLine)
    device = prepare(settings.numerics)
    images, labels = read_labelled(data, read_samples(clients, "train", client), device)
    about = read_info(info)
    architecture = settings.model if client is None else client_model(settings, client)
    model = new_model(architecture, about, device, settings.numerics)
    weights, _ = load_tensors(start)
    fill_model(model, weights, start)
    who = "pooled" if client is None else client
    key = (settings.seed, "local_model", who)
    outcome = train(
        model,
        images,
        labels,
        client_batches(len(images), settings.client, torch_generator(*key, "batches")),
        settings.client,
        client_loss(settings.client.loss, int(about["classes"]), device),
        about,
        torch_generator(*key, "augmentation"),
        settings.numerics,
    )
    if outcome.diverged_at is not None:
        raise FedstageError(
            f"local model, client {who}: the loss is not finite at step {outcome.diverged_at}; "
            f"lower client.learning_rate = {settings.client.learning_rate} or set client.clip_norm"
        )
    notes = {"client": who, "samples": len(images), "steps": outcome.steps, "loss": outcome.loss}
    save_tensors(output, state_of(model), notes)
