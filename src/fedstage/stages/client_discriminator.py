"""Stage `client_discriminator`: a client learns to tell its images from a generator's."""

from pathlib import Path

import torch

from fedstage.algorithm.discriminators import train_discriminator
from fedstage.data.samples import read_labelled, read_samples
from fedstage.errors import FedstageError
from fedstage.models.image_generator import new_image_generator
from fedstage.models.loading import fill_model, state_of
from fedstage.plan.inputs import ClientDiscriminatorInputs
from fedstage.randomness import torch_generator
from fedstage.settings.ensembles import Odds
from fedstage.settings.lines import Line
from fedstage.stages.inputs import begin
from fedstage.storage.tensors import load_tensors, save_tensors


def client_discriminator(
    config: Line, read: ClientDiscriminatorInputs[Path], *, client: int, output: Path
) -> None:
    """Train the client's discriminator on its training samples, against the server's generator.

    Raises
    ------
    FedstageError
        If training diverges: names the client.
    """
    device, info = begin(config, read.info)
    assert isinstance(config.ensemble, Odds), "of such a line alone the graph has this stage"
    owned = read_samples(read.clients, "train", client)
    images, _ = read_labelled(read.data, owned, device, info)
    assert isinstance(images, torch.Tensor), "checked by Line: samples are images"
    how, shape = config.ensemble.generator, tuple(info["shape"])
    net = new_image_generator(shape, how.latent, how.width, torch_generator(0))
    fill_model(net, load_tensors(read.generator)[0], read.generator)
    try:
        judge, loss = train_discriminator(
            config.ensemble.discriminator,
            how,
            net.to(device),
            images,
            info,
            (config.seed, "client_discriminator"),
            client,
            config.numerics,
        )
    except FedstageError as error:
        raise FedstageError(f"client {client}: {error}") from None
    save_tensors(output, state_of(judge), {"client": client, "samples": len(images), "loss": loss})
