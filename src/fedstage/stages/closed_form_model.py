"""Stage `closed_form_model`: a model whose last layer follows from moments of features."""

from pathlib import Path

from fedstage.algorithm.exchange.traffic import payload_bytes
from fedstage.algorithm.one_shot.gaussian_heads import Moments, head, total
from fedstage.algorithm.one_shot.traffic import ROUNDS_SCHEMA, before_rounds
from fedstage.errors import FedstageError
from fedstage.models.heads import LAST
from fedstage.plan.inputs import ClosedFormModelInputs
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.transfers import ClosedForm
from fedstage.stages import Made
from fedstage.storage.tables import save_rows
from fedstage.storage.tensors import load_tensors, save_tensors


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
