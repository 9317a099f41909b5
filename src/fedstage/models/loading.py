"""Models filled with weights, and the weights of models."""

import copy
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fedstage.errors import FedstageError
from fedstage.models.build import build
from fedstage.settings.numerics import Numerics
from fedstage.training.freed_memory import give_back
from fedstage.training.passes import PLAIN, arrange
from fedstage.weights import Tensors, Weights


def new_model(
    settings: Any, info: dict[str, Any], device: torch.device, numerics: Numerics = PLAIN
) -> nn.Module:
    """Return a model for the data set's shape and classes, to be filled with weights."""
    model = build(settings, tuple(info["shape"]), int(info["classes"])).to(device)
    return arrange(model, numerics)


def parameter_names(settings: Any, info: dict[str, Any]) -> list[str]:
    """Return the names of a model's parameters, without buffers, in the model's order."""
    names = [name for name, _ in new_model(settings, info, torch.device("cpu")).named_parameters()]
    give_back()  # the model is freed, and its memory would stay unused
    return names


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


def parameters_of(model: nn.Module, weights: Weights) -> Weights:
    """Return the parameters among `weights`, in the model's order."""
    return {name: weights[name] for name, _ in model.named_parameters()}
