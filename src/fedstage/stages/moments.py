"""Stages of moments of features: each client's by class, and the model that follows from them."""

from pathlib import Path

from torch import nn

from fedstage.algorithm.exchange.traffic import payload_bytes
from fedstage.algorithm.one_shot.gaussian_heads import Moments, head, moments_of, total
from fedstage.algorithm.one_shot.traffic import ROUNDS_SCHEMA, before_rounds
from fedstage.errors import FedstageError
from fedstage.models.prototypes import LAST
from fedstage.plan.inputs import ClosedFormModelInputs, FeatureMomentsInputs
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.transfers import ClosedForm
from fedstage.stages import Made
from fedstage.stages.inputs import begin, load_model, read_own
from fedstage.storage.tables import save_rows
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.training.inference import compute_logits


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


def closed_form_model(recipe: OneShotRecipe, read: ClosedFormModelInputs[Path], made: Made) -> None:
    """Compute the last layer, which follows the layers of `start`.

    Parameters
    ----------
    rounds : Path
        Output: a table of the traffic.

    Raises
    ------
    FedstageError
        If the covariance of the features has no inverse.
    """
    assert isinstance(recipe.distillation, ClosedForm), "of such a recipe alone the graph has this"
    sent = [load_tensors(path) for path in read.moments]
    known = total([Moments(one["counts"], one["sums"], one["products"]) for one, _ in sent])
    weights, biases = head(recipe.distillation, known)
    if not bool(weights.isfinite().all()):
        raise FedstageError(
            f"distillation.shrinkage = {recipe.distillation.shrinkage}: the covariance of "
            "features has no inverse; set it above 0"
        )
    layers, _ = load_tensors(read.start)
    tensors = {name: value.clone() for name, value in layers.items()}
    tensors |= {f"{LAST}.weight": weights, f"{LAST}.bias": biases}
    save_tensors(made["output"], tensors, {"members": [metadata["client"] for _, metadata in sent]})
    up, down = payload_bytes(sent[0][0]), payload_bytes(layers)
    phases = {"initial_model": (0, down), "moments": (up, 0)}
    save_rows(made["rounds"], before_rounds(phases, len(sent)), ROUNDS_SCHEMA)
