"""Checks that rules and server optimisers, including plugins', return tensors like the models'."""

from collections.abc import Iterator
from typing import cast

import torch

from fedstage.errors import FedstageError
from fedstage.weights import Tensors, Weights, shapes_of


def fitting(made: object, like: Tensors, named: str) -> Weights:
    """Return a function's result: finite tensors with the names, shapes and types of `like`.

    Raises
    ------
    FedstageError
        If it is anything else; the message begins with `named`, the function.
    """
    if not isinstance(made, dict):
        raise FedstageError(f"{named} returns {type(made).__name__}: must be tensors by name")
    for fault in _faults(made, shapes_of(like)):
        raise FedstageError(f"{named} returns {fault}")
    return cast(Weights, made)


def _faults(made: dict[str, object], like: Weights) -> Iterator[str]:
    for name, expected in like.items():
        if name not in made:
            yield f"no {name!r}: must return all tensors of the model"
            continue
        told, must = _described(made[name]), _described(expected)
        if told != must:
            yield f"{name!r} of {told}: must be of {must}"
        elif not bool(cast(torch.Tensor, made[name]).isfinite().all()):
            yield f"{name!r} that is not finite"
    for name in [name for name in made if name not in like]:
        yield f"{name!r}: must return only tensors of the model"


def _described(value: object) -> str:
    if not isinstance(value, torch.Tensor):
        return f"type {type(value).__name__}"
    return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
