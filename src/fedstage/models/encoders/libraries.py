"""Encoders of libraries, with weights from a file or as published."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fedstage.errors import FedstageError
from fedstage.models.pretrained import read_state
from fedstage.settings.data_sets import LibraryEncoder, TimmEncoder, TransformersEncoder
from fedstage.weights import Weights

#: What torchvision's published weights expect images to be normalised by.
_IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


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
        _fill(net, read_state(path), path)
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
