"""Pretrained weights: of initial models, from a verified file, and of frozen encoders."""

import hashlib
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.functional import interpolate

from fedstage.errors import FedstageError
from fedstage.settings.base import implementation
from fedstage.settings.data import Features
from fedstage.settings.data_sets import (
    Encoder,
    LibraryEncoder,
    TimmEncoder,
    TransformersEncoder,
)
from fedstage.settings.models import Pretrained
from fedstage.training.passes import arrange, compute
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
    loaded = _without(_read(path), layout.classifier + layout.extra)
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


def _read(path: Path) -> Weights:
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


# --- frozen encoders ------------------------------------------------------------------------------
#
# An encoder is a module that maps images [n, 3, H, W] with values from 0 to 1, or tokens int64
# [n, L], to features [n, d].

#: What torchvision's published weights expect images to be normalised by.
_IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
#: Samples per batch, by device.
_BATCH = {"cpu": 25, "cuda": 250}


def frozen_encoder(settings: Encoder, folder: Path | None) -> nn.Module:
    """Return an encoder, a library's or a plugin's; `folder` is the data folder."""
    built: nn.Module = implementation(settings).network(settings, folder)
    return built.eval().requires_grad_(False)


def network(settings: LibraryEncoder, folder: Path | None) -> nn.Module:
    """Return a library's encoder with its weights.

    Raises
    ------
    FedstageError
        If its weights cannot be read or downloaded, or there is no such model.
    """
    path = folder / settings.weights if folder and settings.in_folder else None
    where = f"data.encoder = {settings.name}: {settings.architecture}, weights = {settings.weights}"
    if settings.in_folder and not (path and path.exists()):
        raise FedstageError(f"{where}: not below the data folder {folder}")
    try:
        if isinstance(settings, TransformersEncoder):
            return _of_tokens(settings, path)
        net, mean, deviation = _of_images(settings)
    except (RuntimeError, ValueError, OSError) as error:
        raise FedstageError(f"{where}: {' '.join(str(error).split())}") from None
    if path is not None:
        _fill(net, _read(path), path)
    return Normalised(net, mean, deviation)


def _of_images(settings: LibraryEncoder) -> tuple[nn.Module, Any, Any]:
    """Return a model without its last layer, and the mean and deviation of its images."""
    published = settings.weights == "published"
    if isinstance(settings, TimmEncoder):
        import timm

        net = timm.create_model(settings.architecture, pretrained=published, num_classes=0)
        config = timm.data.config.resolve_model_data_config(net)
        return net, config["mean"], config["std"]
    from torchvision.models import get_model

    net = get_model(settings.architecture, weights="DEFAULT" if published else None)
    *_, last = (name for name, layer in net.named_modules() if isinstance(layer, nn.Linear))
    net.set_submodule(last, nn.Identity())
    return net, *_IMAGENET


def _fill(net: nn.Module, state: Weights, path: Path) -> None:
    """Load a file's weights; what the encoder lacks, such as a classifier, is left out."""
    for name, value in net.state_dict().items():
        if name not in state or state[name].shape != value.shape:
            found = list(state[name].shape) if name in state else "missing"
            raise FedstageError(f"{path}: {name}: {found}: must be {list(value.shape)}")
    net.load_state_dict({name: state[name] for name in net.state_dict()})


class Normalised(nn.Module):
    """An encoder of images that are normalised by mean and deviation of each channel."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, net: nn.Module, mean: Any, deviation: Any) -> None:
        super().__init__()
        self.net = net
        for name, values in (("mean", mean), ("deviation", deviation)):
            self.register_buffer(name, torch.tensor(values).view(1, -1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        """Return the features of images."""
        features: Tensor = self.net((images - self.mean) / self.deviation)
        return features


def _of_tokens(settings: TransformersEncoder, path: Path | None) -> nn.Module:
    from transformers import AutoModel

    where, local = (settings.architecture, False) if path is None else (path, True)
    net = AutoModel.from_pretrained(where, local_files_only=local, use_safetensors=True)
    return Pooled(net, settings.pooling)


class Pooled(nn.Module):
    """An encoder of texts: one vector of the representations of a text's tokens."""

    def __init__(self, net: Any, pooling: str) -> None:
        super().__init__()
        self.net, self.pooling, self.size = net, pooling, int(net.config.vocab_size)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the features of tokens, of which 0 is padding."""
        if (last := int(tokens.max())) >= self.size:
            raise FedstageError(f"data.of.vocabulary: token {last}: the encoder's has {self.size}")
        mask = tokens != 0
        states: Tensor = self.net(input_ids=tokens, attention_mask=mask).last_hidden_state
        if self.pooling == "first":
            return states[:, 0]
        weights = mask.unsqueeze(2).to(states.dtype)
        return (states * weights).sum(1) / weights.sum(1)


@torch.no_grad()
def encode(encoder: nn.Module, samples: Tensor, settings: Features, device: torch.device) -> Tensor:
    """Return the features float32 [n, d] of samples as they are stored, on the CPU.

    Raises
    ------
    FedstageError
        If they are not [n, d], or not finite.
    """
    arrange(encoder.to(device), settings.numerics)
    parts = []
    for batch in samples.split(_BATCH[device.type]):
        taken = _as_taken(batch.to(device), settings.image_size)
        parts.append(compute(encoder, taken, settings.numerics).float().cpu())
    features = torch.cat(parts)
    if features.ndim != 2 or not features.isfinite().all():
        raise FedstageError(
            f"data.encoder = {settings.encoder.name}: features {list(features.shape)}: must be "
            "finite, [n, d]"
        )
    return features


def _as_taken(samples: Tensor, size: int | None) -> Tensor:
    """Return samples as encoders take them: images of three channels in the wanted size."""
    if samples.dtype != torch.uint8:
        return samples.long()
    images = samples.expand(-1, 3, -1, -1) / 255
    if size is None or images.shape[2:] == (size, size):
        return images
    return interpolate(images, (size, size), mode="bilinear", antialias=True)


def digest_of(encoder: nn.Module) -> str:
    """Return a SHA-256 of an encoder's weights."""
    found = hashlib.sha256()
    for name, value in sorted(encoder.state_dict().items()):
        found.update(name.encode())
        found.update(value.cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()
