"""Weights that a model starts from, of a file: never downloaded, and known by its checksum."""

import hashlib
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from fedstage.errors import FedstageError
from fedstage.settings.models import Pretrained

_UNREADABLE = (
    SafetensorError, pickle.UnpicklingError, RuntimeError, EOFError, ValueError, OSError,
)  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """How the tensors of a model are called in a file.

    Attributes
    ----------
    last : tuple of str
        The layers that tell the classes apart, which stay as they are.
    inside : str
        The layer of ours that the file is of; empty for the whole model.
    other : tuple of str
        How the names of layers begin that the file may have and the model has not.
    """

    last: tuple[str, ...]
    inside: str = ""
    other: tuple[str, ...] = ()


LAYOUTS = {
    "efficientnet_b0": Layout(last=("classifier.1.",)),
    # Published files are of the model that fills in words.
    "distilbert": Layout(("pre_classifier.", "classifier."), "network.", other=("vocab_",)),
}


@torch.no_grad()
def take_weights(
    model: nn.Module, settings: Pretrained, folder: Path | None, layout: Layout
) -> None:
    """Give a model the weights of a file, in place.

    Parameters
    ----------
    folder : Path or None
        The data folder.

    Raises
    ------
    FedstageError
        If the file is missing, has another checksum, or does not fit the model.
    """
    if folder is None:
        raise FedstageError(
            f"model.weights.file = {settings.file!r}: the data folder is not set; set data_folder "
            "in config.yaml or FEDSTAGE_DATA"
        )
    path = folder / settings.file
    _verify(path, settings.sha256)
    every = _read(path)
    named = {name.removeprefix(layout.inside): value for name, value in model.state_dict().items()}
    own = {name: value for name, value in named.items() if not name.startswith(layout.last)}
    passed = layout.last + layout.other
    given = {name: value for name, value in every.items() if not name.startswith(passed)}
    for name in sorted(given.keys() ^ own.keys()):
        where = "the model has no such tensor" if name in given else "missing"
        raise FedstageError(f"{path}: {name}: {where}; it must be a state dict of the model")
    for name, value in own.items():
        if given[name].shape != value.shape:
            shapes = f"{list(given[name].shape)}: must be {list(value.shape)}"
            raise FedstageError(f"{path}: {name} has shape {shapes}")
        value.copy_(given[name])


def _verify(path: Path, sha256: str) -> None:
    if not path.is_file():
        raise FedstageError(f"{path}: model.weights: no such file; it is never downloaded")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if not found.startswith(sha256):
        raise FedstageError(
            f"{path}: model.weights.sha256 = {sha256!r}: the file's is {found[: len(sha256)]}"
        )


def _read(path: Path) -> dict[str, torch.Tensor]:
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        state: Any = torch.load(path, map_location="cpu", weights_only=True)
    except _UNREADABLE as error:
        detail = " ".join(str(error).split())
        raise FedstageError(f"{path}: cannot be read as weights ({detail})") from None
    if not isinstance(state, dict) or not all(map(torch.is_tensor, state.values())):
        raise FedstageError(f"{path}: must be a state dict, a mapping of names to tensors")
    return state
