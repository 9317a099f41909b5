"""Parts of a model, and models of which only some parts are trained.

What is not trained is kept in buffers that no state dict has. So updates, averages, noise, masks,
control variates and files are of the trained tensors alone, and nothing else needs to know.
"""

from collections.abc import Sequence
from typing import Any

from torch import nn

from fedstage.errors import FedstageError
from fedstage.models.heads import HEAD
from fedstage.weights import Weights

_NORMS = (nn.modules.batchnorm._NormBase, nn.GroupNorm, nn.LayerNorm)


def tensors_of(model: nn.Module, parts: Sequence[str], key: str = "model.trainable") -> list[str]:
    """Return the names of the tensors of parts, in the order of the model's state.

    `head` is the model's head or, without one, its last layer with parameters; `norm` are its
    norms; any other part is a layer or tensor by its name.

    Raises
    ------
    FedstageError
        If a part, which the setting `key` gives, has no tensors.
    """
    state = list(model.state_dict())
    last = [name for name, _ in model.named_parameters()][-1:]
    of: dict[str, list[str]] = {
        "head": [HEAD] if hasattr(model, HEAD) else [name.rpartition(".")[0] for name in last],
        "norm": [name for name, layer in model.named_modules() if isinstance(layer, _NORMS)],
    }
    chosen = set[str]()
    for part in parts:
        begins = tuple(f"{name}." for name in of.get(part, [part]))
        found = [name for name in state if f"{name}.".startswith(begins)]
        if not found:
            raise FedstageError(
                f"{key} = {part!r}: the model has no such tensors; it must be head, norm, or a "
                f"layer or tensor such as {state[0]}"
            )
        chosen.update(found)
    return [name for name in state if name in chosen]


def freeze(model: nn.Module, parts: Sequence[str]) -> Weights:
    """Leave only these parts of a model in its state; return its other tensors, by name.

    They are the model's own: who writes to them changes the model. Norms whose running statistics
    are among them normalise by these in training, too.
    """
    kept = tensors_of(model, parts)
    rest = {name: value for name, value in model.state_dict().items() if name not in kept}
    for name, value in rest.items():
        place, _, own = name.rpartition(".")
        layer = model.get_submodule(place)
        is_buffer = own in dict(layer.named_buffers(recurse=False))
        if is_buffer and isinstance(layer, _NORMS):
            layer.eval()
            vars(layer)["train"] = _stay
            vars(layer)["track_running_stats"] = False  # or files would have to have its counter
        elif not is_buffer:
            delattr(layer, own)
        layer.register_buffer(own, value, persistent=False)
    return rest


def _stay(mode: bool = True) -> Any:
    """Take the place of `train` in a norm that never trains."""
