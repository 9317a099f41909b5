"""Stages of discriminators (FedGO): a public generator, clients that tell its images, and odds."""

from pathlib import Path

import torch

from fedstage.algorithm.discriminators import draw, train_discriminator, train_generator
from fedstage.data.samples import read_public
from fedstage.errors import fault_of
from fedstage.models.image_generator import new_discriminator, new_image_generator
from fedstage.models.loading import fill_model, state_of
from fedstage.plan.inputs import ClientDiscriminatorInputs, ClientOddsInputs, PublicInputs
from fedstage.randomness import torch_generator
from fedstage.settings.ensembles import Odds
from fedstage.settings.recipes import Recipe
from fedstage.stages import Made
from fedstage.stages.inputs import begin, read_own
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.training.image_grid import save_grid
from fedstage.training.passes import compute_logits

_GRID = 10  # images in a row and in a column of the picture


def public_generator(recipe: Recipe, read: PublicInputs[Path], made: Made) -> None:
    """Train the generator that clients' discriminators are trained against.

    Parameters
    ----------
    picture : Path
        Output: some of the generated images.
    """
    device, info = begin(recipe, read.info)
    assert isinstance(recipe.ensemble, Odds), "of such a recipe alone the graph has this stage"
    images = read_public(read.public, info, device)
    assert isinstance(images, torch.Tensor), "checked by Recipe: samples are images"
    how = recipe.ensemble.generator
    key = (recipe.seed, "public_generator")
    net, loss = train_generator(how, images, info, key, recipe.numerics)
    save_tensors(made["output"], state_of(net), {"loss": loss})
    latent = draw(how, _GRID**2, torch_generator(*key, "picture"), device)
    with torch.no_grad():
        shown = net.eval()(latent).mul(255).round().to(torch.uint8).cpu()
    number = torch.arange(len(shown))
    save_grid(made["picture"], shown, number // _GRID, number % _GRID, [""] * _GRID)


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


def client_odds(recipe: Recipe, read: ClientOddsInputs[Path], *, output: Path) -> None:
    """Compute log odds [clients, n] of public images."""
    device, info = begin(recipe, read.info)
    assert isinstance(recipe.ensemble, Odds), "of such a recipe alone the graph has this stage"
    images = read_public(read.public, info, device)
    shape, width = tuple(info["shape"]), recipe.ensemble.discriminator.width
    judge = new_discriminator(shape, width, torch_generator(0)).to(device)
    odds = []
    for path in read.discriminators:
        fill_model(judge, load_tensors(path)[0], path)
        odds.append(compute_logits(judge, images, info, recipe.numerics))
    save_tensors(output, {"log_odds": torch.stack(odds)})
