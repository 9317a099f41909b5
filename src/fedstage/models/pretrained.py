"""Initial weights from a local file, verified by its checksum; nothing is downloaded."""

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
from fedstage.weights import Weights

_UNREADABLE = (
    SafetensorError, pickle.UnpicklingError, RuntimeError, EOFError, ValueError, OSError,
)  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """How a file names the tensors of a model; layers are given by prefixes of their names."""

    classifier: tuple[str, ...]  #: the last layers, which keep their drawn weights
    prefix: str = ""  #: of the model's names, which the file lacks
    extra: tuple[str, ...] = ()  #: layers that only the file has
    renamed: tuple[tuple[str, str], ...] = ()  #: ends of the file's names, and the model's


LAYOUTS = {
    "efficientnet_b0": Layout(("classifier.1.",)),
    # Published files hold the masked-language model.
    "distilbert": Layout(("pre_classifier.", "classifier."), "network.", extra=("vocab_",)),
    # Files have BERT's pretraining heads, and may have the positions' numbers; old files name
    # norms as TensorFlow does.
    "bert": Layout(
        ("classifier.",),
        "network.",
        extra=("cls.", "bert.embeddings.position_ids"),
        renamed=((".gamma", ".weight"), (".beta", ".bias")),
    ),
}


@torch.no_grad()
def take_weights(
    model: nn.Module, settings: Pretrained, folder: Path | None, layout: Layout
) -> None:
    """Copy the weights of a file in the data folder into a model.

    Raises
    ------
    FedstageError
        If the file is missing, has a different checksum, or does not fit the model.
    """
    if folder is None:
        raise FedstageError(
            f"model.weights.file = {settings.file!r}: the data folder is not set; set data_folder "
            "in config.yaml or FEDSTAGE_DATA"
        )
    path = folder / settings.file
    _verify(path, settings.sha256)
    state = {name.removeprefix(layout.prefix): value for name, value in model.state_dict().items()}
    own = _without(state, layout.classifier)
    loaded = _without(read_state(path), layout.classifier + layout.extra)
    loaded = {_renamed(name, layout): value for name, value in loaded.items()}
    for name in sorted(loaded.keys() ^ own.keys()):
        where = "the model has no such tensor" if name in loaded else "missing"
        raise FedstageError(f"{path}: {name}: {where}; it must be a state dict of the model")
    for name, value in own.items():
        if loaded[name].shape != value.shape:
            shapes = f"{list(loaded[name].shape)}: must be {list(value.shape)}"
            raise FedstageError(f"{path}: {name} has shape {shapes}")
        value.copy_(loaded[name])


def _without(state: Weights, beginnings: tuple[str, ...]) -> Weights:
    return {name: value for name, value in state.items() if not name.startswith(beginnings)}


def _renamed(name: str, layout: Layout) -> str:
    for end, own in layout.renamed:
        if name.endswith(end):
            return name.removesuffix(end) + own
    return name


def _verify(path: Path, sha256: str | None) -> None:
    if not path.is_file():
        raise FedstageError(f"{path}: model.weights: no such file; it is never downloaded")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if sha256 is None or not found.startswith(sha256):
        raise FedstageError(f"{path}: model.weights.sha256 = {sha256!r}: the file's is {found}")


def read_state(path: Path) -> Weights:
    """Return the state dict of a file, read without executing code."""
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
