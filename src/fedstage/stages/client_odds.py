"""Stage `client_odds`: how likely each client is the source of a public image."""

from pathlib import Path

import torch

from fedstage.data.samples import read_public
from fedstage.models.discriminator import new_discriminator
from fedstage.models.loading import fill_model
from fedstage.plan.inputs import ClientOddsInputs
from fedstage.randomness import torch_generator
from fedstage.settings.ensembles import Odds
from fedstage.settings.recipes import Recipe
from fedstage.stages.inputs import begin
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.training.inference import compute_logits


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
