"""Stage `client_discriminator`: a client learns to tell its images from a generator's."""

from pathlib import Path

import torch

from fedstage.algorithm.discriminators import train_discriminator
from fedstage.errors import fault_of
from fedstage.models.image_generator import new_image_generator
from fedstage.models.loading import fill_model, state_of
from fedstage.plan.inputs import ClientDiscriminatorInputs
from fedstage.randomness import torch_generator
from fedstage.settings.ensembles import Odds
from fedstage.settings.recipes import Recipe
from fedstage.stages.inputs import begin, read_own
from fedstage.storage.tensors import load_tensors, save_tensors


def client_discriminator(
    recipe: Recipe, read: ClientDiscriminatorInputs[Path], *, client: int, output: Path
) -> None:
    """Train the client's discriminator on its training samples, against the server's generator.

    Raises
    ------
    FedstageError
        If training diverges; the message names the client.
    """
    device, info = begin(recipe, read.info)
    assert isinstance(recipe.ensemble, Odds), "of such a recipe alone the graph has this stage"
    images, _ = read_own(read.data, read.clients, client, device, info)
    assert isinstance(images, torch.Tensor), "checked by Recipe: samples are images"
    how, shape = recipe.ensemble.generator, tuple(info["shape"])
    net = new_image_generator(shape, how.latent, how.width, torch_generator(0))
    fill_model(net, load_tensors(read.generator)[0], read.generator)
    with fault_of(f"client {client}"):
        judge, loss = train_discriminator(
            recipe.ensemble.discriminator,
            how,
            net.to(device),
            images,
            info,
            (recipe.seed, "client_discriminator"),
            client,
            recipe.numerics,
        )
    save_tensors(output, state_of(judge), {"client": client, "samples": len(images), "loss": loss})
