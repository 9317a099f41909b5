"""Clients' fully trained models, as they are or quantised, and their logits."""

import logging
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from fedstage.data.bags import Bags, Samples
from fedstage.errors import FedstageError, how_to_install
from fedstage.models.loading import fill_model, new_model
from fedstage.protocol.one_shot import client_model
from fedstage.settings.aggregators import Aggregator
from fedstage.settings.recipes import LocalRecipe
from fedstage.storage.tensors import load_tensors
from fedstage.training.passes import PLAIN, compute_logits


def compute_client_logits(
    settings: LocalRecipe, path: Path, samples: Samples, info: dict[str, Any]
) -> tuple[torch.Tensor, dict[str, Any]]:
    """Return the logits [n, classes] of a client's model on samples, and its file's metadata.

    The model in the file has the quantisation of the settings. A quantised network computes in
    float32 with the values of its 8-bit numbers, regardless of the precision in the numerics: bf16
    would round them again.

    Raises
    ------
    FedstageError
        If the file does not fit the model, or a library is missing.
    """
    tensors, metadata = load_tensors(path)
    client, quantised = metadata["client"], settings.quantisation.name != "none"
    numerics = PLAIN if quantised else settings.numerics
    architecture = settings.model if isinstance(client, str) else client_model(settings, client)
    network = new_model(architecture, info, samples.device, numerics)
    if quantised:
        try:
            network = library().restore(network, example(samples), tensors)
        except KeyError as error:
            raise FedstageError(f"{path}: does not fit the model: has no tensor {error}") from None
    else:
        fill_model(network, tensors, path)
    return compute_logits(network, samples, info, numerics), metadata


def library() -> ModuleType:
    """Return the module that quantises to 8 bits, which imports torchao.

    Raises
    ------
    FedstageError
        If torchao is not installed.
    """
    # torch 2.13 warns about a type that torchao 0.18 registers.
    logging.getLogger("torch.utils._pytree").setLevel(logging.ERROR)
    try:
        from fedstage.models import int8
    except ImportError as error:
        raise FedstageError(
            f"quantisation = int8: needs the package torchao ({error}); {how_to_install('int8')}"
        ) from None
    return int8


def example(samples: Samples) -> torch.Tensor:
    """Return two blank samples as a model's input, from which its graph takes shapes."""
    if isinstance(samples, Bags):
        return samples.instances.new_ones(2, 3, 1 + samples.shape[1])
    kind = torch.float32 if samples.dtype == torch.uint8 else samples.dtype
    return torch.zeros(2, *samples.shape[1:], dtype=kind, device=samples.device)


def of_classes(logits: torch.Tensor, info: Mapping[str, Any]) -> torch.Tensor:
    """Return the outputs [..., C] for the data set's classes, which come first."""
    return logits[..., : int(info["classes"])]


def of_rule(aggregator: Aggregator, logits: torch.Tensor, info: Mapping[str, Any]) -> torch.Tensor:
    """Return the outputs [..., n, outputs] that a rule sees: the classes', or all."""
    return logits if aggregator.sees_all_outputs else of_classes(logits, info)
