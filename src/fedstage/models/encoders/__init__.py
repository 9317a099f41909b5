"""Frozen encoders: modules that map samples to features [n, d].

They take images [n, 3, H, W] with values from 0 to 1, or tokens int64 [n, L].
"""

import hashlib
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from fedstage.errors import FedstageError
from fedstage.settings.base import implementation
from fedstage.settings.data import Features
from fedstage.settings.data_sets import Encoder
from fedstage.training.passes import arrange, compute

#: Samples per batch, by device.
_BATCH = {"cpu": 25, "cuda": 250}


def frozen_encoder(settings: Encoder, folder: Path | None) -> nn.Module:
    """Return an encoder, a library's or a plugin's; `folder` is the data folder."""
    built: nn.Module = implementation(settings).network(settings, folder)
    return built.eval().requires_grad_(False)


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
