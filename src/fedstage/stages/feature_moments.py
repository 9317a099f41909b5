"""Stage `feature_moments`: a client's counts, sums and products of features by class."""

from pathlib import Path

from torch import nn

from fedstage.algorithm.one_shot.gaussian_heads import moments_of
from fedstage.models.heads import LAST
from fedstage.plan.inputs import FeatureMomentsInputs
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.stages.inputs import begin, load_model, read_own
from fedstage.storage.tensors import save_tensors
from fedstage.training.passes import compute_logits


def feature_moments(
    recipe: OneShotRecipe, read: FeatureMomentsInputs[Path], *, client: int, output: Path
) -> None:
    """Compute moments of the client's training samples after all but the last layer of a model."""
    device, info = begin(recipe, read.info)
    images, labels = read_own(read.data, read.clients, client, device, info)
    model = load_model(read.start, recipe.student or recipe.model, info, device, recipe.numerics)
    setattr(model, LAST, nn.Identity())
    features = compute_logits(model, images, info, recipe.numerics)
    found = moments_of(features, labels.cpu(), int(info["classes"]))
    tensors = {"counts": found.counts.int(), "sums": found.sums.float()}
    tensors["products"] = found.products.float()
    save_tensors(output, tensors, {"client": client, "samples": len(labels)})
