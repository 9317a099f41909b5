"""Models on images of noise, by default ResNet-20: what the benchmarks of the engine compute."""

from typing import Any

import torch
from pydantic import TypeAdapter
from torch import nn

from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.models import Model
from fedstage.settings.numerics import Numerics
from fedstage.training.passes import arrange

INFO: dict[str, Any] = {"mean": [0.49, 0.48, 0.45], "std": [0.25, 0.24, 0.26]}
CLASSES = 10

#: Ways to compute that a recipe can choose, from slow to fast.
WAYS = {
    "fp32": {},
    "fp32 channels_last": {"memory_format": "channels_last"},
    "bf16 channels_last": {"precision": "bf16", "memory_format": "channels_last"},
}


def numerics(way: str, threads: int, device: str) -> Numerics:
    """Return the numerics of a way."""
    return Numerics.model_validate(WAYS[way] | {"threads": threads, "device": device})


def network(chosen: Numerics, device: torch.device, name: str = "resnet20") -> nn.Module:
    """Return a model with initial weights."""
    made = build(TypeAdapter(Model).validate_python(name), (3, 32, 32), CLASSES)
    initialise(made, torch_generator(0, "weights"))
    return arrange(made.to(device), chosen)


def images(count: int, device: torch.device) -> torch.Tensor:
    """Return uint8 images of noise."""
    generator = torch_generator(0, "images")
    noise = torch.randint(0, 256, (count, 3, 32, 32), generator=generator, dtype=torch.uint8)
    return noise.to(device)


def pixels(count: int, device: torch.device) -> torch.Tensor:
    """Return the same as float images, normalised before any clock runs."""
    shape = (1, 3, 1, 1)
    mean, std = (torch.tensor(INFO[name], device=device).view(shape) for name in ("mean", "std"))
    return (images(count, device) / 255 - mean) / std
