"""Models as they are built from settings, and loaded from files."""

import copy
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from fedstage.errors import FedstageError
from fedstage.models.architectures import architecture
from fedstage.models.heads import with_head, with_prototypes
from fedstage.models.parts import freeze
from fedstage.protocol.groups import head_of
from fedstage.randomness import Key, drawing_from
from fedstage.settings.models import Model, check_size
from fedstage.settings.numerics import Numerics
from fedstage.training.freed_memory import give_back
from fedstage.training.passes import PLAIN, arrange
from fedstage.weights import Tensors, Weights

T = TypeVar("T")


def build(settings: Model, shape: tuple[int, ...], classes: int, *key: Key) -> nn.Module:
    """Return a model on the CPU that maps samples [n, *shape] to logits [n, classes + more].

    `more` is the settings' `more_outputs`, 0 by default, or the width of the model's features.

    What its construction draws follows from the key, and the global generators stay unchanged. All
    jobs but that of its initial weights have the same key: what a file of weights lacks is alike.

    Parameters
    ----------
    shape : tuple[int, ...]
        [C, H, W] of an image; [F] of features, or of an instance of a bag; [L] of tokens.

    Raises
    ------
    FedstageError
        If the model does not take such samples, images this small, or this many classes.
    """
    check_size(settings, shape)
    # Building on the meta device would draw nothing, but imports sympy (more than a second in every
    # job), and not every module can be built there.
    with drawing_from("network", *key):
        if settings.more_outputs == "features":
            return with_prototypes(architecture(settings).network(settings, shape, 1), classes)
        return _with_outputs(settings, shape, classes + settings.more_outputs)


def _with_outputs(settings: Model, shape: tuple[int, ...], outputs: int) -> nn.Module:
    head = head_of(settings)
    network = architecture(settings).network
    if head is None:
        return network(settings, shape, outputs)
    return with_head(network(settings, shape, head.hidden), head, outputs)


def new_model(
    settings: Any, info: dict[str, Any], device: torch.device, numerics: Numerics = PLAIN
) -> nn.Module:
    """Return a model for the data set's shape and classes, to be filled with weights.

    What it does not train has its base weights, and its state lacks it.
    """
    model = build(settings, tuple(info["shape"]), int(info["classes"]))
    if settings.trainable:
        for name, value in freeze(model, settings.trainable).items():
            value.copy_(info["base"][name])
    return arrange(model.to(device), numerics)


def asked(settings: Any, info: dict[str, Any], ask: Callable[[nn.Module], T]) -> T:
    """Return what `ask` finds in a model, such as names; the model is not kept."""
    found = ask(new_model(settings, info, torch.device("cpu")))
    give_back()  # the model is freed, and its memory would stay unused
    return found


def parameter_names(settings: Any, info: dict[str, Any]) -> list[str]:
    """Return the names of a model's parameters, without buffers, in the model's order."""
    return asked(settings, info, lambda model: [name for name, _ in model.named_parameters()])


def fill_model(model: nn.Module, weights: Tensors, path: Path) -> None:
    """Load the weights of the file `path` into a model.

    Raises
    ------
    FedstageError
        If names or shapes do not fit.
    """
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        detail = " ".join(str(error).split())
        raise FedstageError(f"{path}: does not fit the model: {detail}") from None


def frozen(model: nn.Module) -> nn.Module:
    """Return a copy of a model that uses its running statistics and is not trained."""
    return copy.deepcopy(model).eval().requires_grad_(False)


def state_of(model: nn.Module) -> Weights:
    """Return a copy of a model's weights and buffers on the CPU."""
    return {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}


def parameters_of(model: nn.Module, weights: Tensors, kept: Collection[str] = ()) -> Weights:
    """Return the parameters among `weights`, in the model's order, without those that are kept."""
    return {name: weights[name] for name, _ in model.named_parameters() if name not in kept}
