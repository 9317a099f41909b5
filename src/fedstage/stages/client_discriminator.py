"""Stage `client_discriminator`: a client learns to tell its images from a generator's."""

from pathlib import Path

import torch

from fedstage.algorithm.discriminators import train_discriminator
from fedstage.data.samples import read_labelled, read_samples
from fedstage.errors import FedstageError
from fedstage.models.image_generator import new_image_generator
from fedstage.models.loading import fill_model, state_of
from fedstage.randomness import torch_generator
from fedstage.settings.ensembles import Odds
from fedstage.settings.lines import Line
from fedstage.stages.inputs import begin
from fedstage.storage.tensors import load_tensors, save_tensors


def client_discriminator(
    *,
    line: Path,
    client: int,
    generator: Path,
    data: Path,
    clients: Path,
    info: Path,
    output: Path,
) -> None:
    """Train the client's discriminator on its training samples, against the server's generator.

    Raises
    ------
    FedstageError
        If training diverges: names the client.
    """
    settings, device, dataset_info = begin(line, Line, info)
    assert isinstance(settings.ensemble, Odds), "of such a line alone the graph has this stage"
    owned = read_samples(clients, "train", client)
    images, _ = read_labelled(data, owned, device, dataset_info)
    assert isinstance(images, torch.Tensor), "checked by Line: samples are images"
    how, shape = settings.ensemble.generator, tuple(dataset_info["shape"])
    net = new_image_generator(shape, how.latent, how.width, torch_generator(0))
    fill_model(net, load_tensors(generator)[0], generator)
    try:
        judge, loss = train_discriminator(
            settings.ensemble.discriminator,
            how,
            net.to(device),
            images,
            dataset_info,
            (settings.seed, "client_discriminator"),
            client,
            settings.numerics,
        )
    except FedstageError as error:
        raise FedstageError(f"client {client}: {error}") from None
    save_tensors(output, state_of(judge), {"client": client, "samples": len(images), "loss": loss})
