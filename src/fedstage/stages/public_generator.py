"""Stage `public_generator`: the server trains a generator on its public images."""

from pathlib import Path

import torch

from fedstage.algorithm.discriminators import draw, train_generator
from fedstage.data.samples import read_public
from fedstage.models.loading import state_of
from fedstage.plan.inputs import PublicInputs
from fedstage.randomness import torch_generator
from fedstage.results.figures.images import save_grid
from fedstage.settings.ensembles import Odds
from fedstage.settings.recipes import Recipe
from fedstage.stages import Made
from fedstage.stages.inputs import begin
from fedstage.storage.tensors import save_tensors

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
