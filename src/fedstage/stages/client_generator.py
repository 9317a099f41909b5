"""Stage `client_generator`: a client trains a generator of images like its own."""

from pathlib import Path

import torch

from fedstage.algorithm.one_shot.generators import of_clients
from fedstage.data.samples import read_labelled, read_samples
from fedstage.errors import FedstageError
from fedstage.settings.one_shot import OneShotLine
from fedstage.stages.inputs import begin
from fedstage.storage.tensors import save_tensors


def client_generator(
    *, line: Path, client: int, data: Path, info: Path, clients: Path, output: Path
) -> None:
    """Train the generator on the client's training samples; write all of it that travels.

    These are its `decoder.*` and the client's `label_counts`, int32 [classes].

    Raises
    ------
    FedstageError
        If training diverges: names the client and the step.
    """
    settings, device, dataset_info = begin(line, OneShotLine, info)
    assert settings.generator is not None, "checked by the catalogue: such a line has a generator"
    images, labels = read_labelled(
        data, read_samples(clients, "train", client), device, dataset_info
    )
    assert isinstance(images, torch.Tensor), "checked by OneShotLine: samples are images"
    key = (settings.seed, "client_generator", client)
    module = of_clients(settings.generator)
    try:
        weights, loss = module.train(
            settings.generator, images, labels, dataset_info, key, settings.numerics
        )
    except FedstageError as error:
        raise FedstageError(f"client {client}: {error}") from None
    counts = torch.bincount(labels.cpu(), minlength=int(dataset_info["classes"]))
    tensors = {f"decoder.{name}": value for name, value in weights.items()}
    tensors["label_counts"] = counts.to(torch.int32)
    save_tensors(output, tensors, {"client": client, "samples": len(images), "loss": loss})
