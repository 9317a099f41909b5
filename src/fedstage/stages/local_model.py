"""Stage `local_model`: a client, all their data pooled, or the server's core, to the end."""

from pathlib import Path

from fedstage.algorithm.one_shot import prototype_learning, unknown_class
from fedstage.data.samples import read_labelled, read_samples
from fedstage.errors import FedstageError
from fedstage.models.loading import state_of
from fedstage.plan.one_shot_artefacts import trained_on
from fedstage.plan.one_shot_sharing import client_model
from fedstage.randomness import torch_generator
from fedstage.settings.lines import LocalLine
from fedstage.stages.inputs import begin, load_model
from fedstage.storage.tensors import save_tensors
from fedstage.training.batches import client_batches
from fedstage.training.images import unit_of
from fedstage.training.loop import train
from fedstage.training.losses import client_loss


def local_model(
    *,
    line: Path,
    client: int | None = None,
    data: Path,
    info: Path,
    clients: Path | None = None,
    start: Path,
    output: Path,
) -> None:
    """Train a model on the training samples of `client`, or of all clients, or on all of `data`.

    Parameters
    ----------
    clients : Path, optional
        The partition; none where `data` is the server's core.

    Raises
    ------
    FedstageError
        If training diverges: names the client and the step.
    """
    settings, device, dataset_info = begin(line, LocalLine, info)
    samples = None if clients is None else read_samples(clients, "train", client)
    images, labels = read_labelled(data, samples, device, dataset_info)
    architecture = settings.model if client is None else client_model(settings, client)
    model = load_model(start, architecture, dataset_info, device, settings.numerics)
    who = (trained_on(settings) or "pooled") if client is None else client
    key = (settings.seed, "local_model", who)
    loss = client_loss(settings.client.loss, int(dataset_info["classes"]), device)
    objective = None
    if settings.prototypes is not None:
        generator = torch_generator(*key, "views")
        objective = prototype_learning.objective(
            settings.prototypes, dataset_info, settings.numerics, generator
        )
    if settings.unknown is not None:
        generator, unit = torch_generator(*key, "outliers"), unit_of(images, dataset_info)
        means = unknown_class.Means(loss, settings.numerics, generator, unit)
        objective = unknown_class.objective(settings.unknown, means)
    outcome = train(
        model,
        images,
        labels,
        client_batches(len(images), settings.client, torch_generator(*key, "batches")),
        settings.client,
        loss,
        dataset_info,
        torch_generator(*key, "augmentation"),
        settings.numerics,
        objective=objective,
    )
    if outcome.diverged_at is not None:
        name = f"client {who}" if isinstance(who, int) else who
        raise FedstageError(
            f"local model, {name}: the loss is not finite at step {outcome.diverged_at}; "
            f"lower client.learning_rate = {settings.client.learning_rate} or set client.clip_norm"
        )
    metadata = {"client": who, "samples": len(images), "steps": outcome.steps, "loss": outcome.loss}
    save_tensors(output, state_of(model), metadata)
