"""Stage `head_sharing`: a model takes the mean of other models' heads."""

from pathlib import Path

from fedstage.algorithm.aggregation.averages import average_weights
from fedstage.algorithm.exchange.updates import part
from fedstage.models.heads import HEAD
from fedstage.plan.inputs import HeadSharingInputs
from fedstage.settings.recipes import Recipe
from fedstage.storage.tensors import load_tensors, open_tensors, save_tensors
from fedstage.weights import Weights

_UPDATE = "model/"


def head_sharing(
    recipe: Recipe, read: HeadSharingInputs[Path], *, round_: int, group: int, output: Path
) -> None:
    """Write a model with the plain mean of the heads of others, H = 1/m sum_k h_k (Fed-ET).

    On the way up these are the participants' heads (section 3.2, step 1), on the way down the head
    of the server's model (step 3). Absent participants and dropped updates have none; if there is
    none, the model keeps its own.
    """
    weights, metadata = load_tensors(read.model)
    others = [head for head in map(_head_of, read.heads) if head]
    if others:
        weights = weights | average_weights(others, [1.0] * len(others))
    save_tensors(output, weights, metadata | {"round": round_, "group": group})


def _head_of(path: Path) -> Weights:
    """Return the tensors of a model's head, or an update's; empty if it was dropped."""
    tensors, _ = open_tensors(path)
    model = part(tensors, _UPDATE) or tensors
    return {name: model[name] for name in model if name.startswith(f"{HEAD}.")}
