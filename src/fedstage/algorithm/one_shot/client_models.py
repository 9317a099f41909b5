"""Clients' models that were trained to the end, as they are or quantised, ready to be asked."""

import logging
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from fedstage.data.bags import Bags, Samples
from fedstage.data.samples import fill_model, new_model
from fedstage.errors import FedstageError
from fedstage.plan.sharing import client_model
from fedstage.settings.lines import LocalLine
from fedstage.settings.quantisation import Int8
from fedstage.settings.validation import validate_json
from fedstage.storage.tensors import Weights, load_tensors
from fedstage.training.inference import compute_logits
from fedstage.training.passes import PLAIN


def ask(
    settings: LocalLine,
    path: Path,
    quantisation: str | None,
    samples: Samples,
    about: dict[str, Any],
) -> tuple[torch.Tensor, dict[str, Any]]:
    """Return what a client's model says: logits [n, classes], and the notes of its file.

    A quantised network computes in float32 with the values of its 8-bit numbers, whatever precision
    numerics name: in bf16 they would be rounded once more.

    Parameters
    ----------
    quantisation : str or None
        How the model in the file is quantised, as JSON.

    Raises
    ------
    FedstageError
        If the file does not fit the model, or a library is missing.
    """
    tensors, notes = load_tensors(path)
    who, numerics = notes["client"], PLAIN if quantisation else settings.numerics
    architecture = settings.model if who == "pooled" else client_model(settings, who)
    network = new_model(architecture, about, samples.device, numerics)
    if quantisation:
        network = _restored(network, quantisation, samples, tensors, path)
    else:
        fill_model(network, tensors, path)
    return compute_logits(network, samples, about, numerics), notes


def library() -> ModuleType:
    """Return what quantises to 8 bits, which imports torchao.

    Raises
    ------
    FedstageError
        If torchao is not installed.
    """
    # torch 2.13 warns of how torchao 0.18 registers a type of its own.
    logging.getLogger("torch.utils._pytree").setLevel(logging.ERROR)
    try:
        from fedstage.models import int8
    except ImportError as error:
        raise FedstageError(
            f"quantisation = int8: needs the package torchao ({error}); install the extra int8: "
            "uv sync --extra int8"
        ) from None
    return int8


def example(samples: Samples) -> torch.Tensor:
    """Return two samples without content, as a model takes them: for the shape of its graph."""
    if isinstance(samples, Bags):
        return samples.instances.new_ones(2, 3, 1 + samples.shape[1])
    kind = torch.float32 if samples.dtype == torch.uint8 else samples.dtype
    return torch.zeros(2, *samples.shape[1:], dtype=kind, device=samples.device)


def _restored(
    network: nn.Module, quantisation: str, samples: Samples, tensors: Weights, path: Path
) -> nn.Module:
    how = validate_json(Int8, quantisation, "--quantisation")
    try:
        restored: nn.Module = library().restore(network, how, example(samples), tensors)
    except KeyError as error:
        raise FedstageError(f"{path}: does not fit the model: has no tensor {error}") from None
    return restored
