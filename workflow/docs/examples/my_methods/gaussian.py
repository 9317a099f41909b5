"""Normal pixels, with their mean and deviation in a client's class."""

from typing import ClassVar, Literal

import torch
from torch.nn.functional import one_hot

from fedstage.settings.base import NonNegative
from fedstage.settings.generators import OfClients


class Gaussian(OfClients):
    """Normal pixels of each class, with `spread` times their deviation."""

    of_sampling: ClassVar[tuple[str, ...]] = ("samples", "spread")
    name: Literal["gaussian"]
    spread: NonNegative = 1.0


def train(settings, images, labels, info, key, numerics):
    of_class = one_hot(labels, info["classes"]).T.float()
    of_class /= of_class.sum(1, keepdim=True).clamp(min=1)
    pixels = images.flatten(1).float()
    mean = of_class @ pixels
    variance = (of_class @ pixels.square() - mean.square()).clamp(min=0)
    return {"mean": mean.cpu(), "std": variance.sqrt().cpu()}, 0.0


def sample(settings, weights, labels, info, generator, device):
    mean, std = weights["mean"][labels], weights["std"][labels]
    noise = torch.randn(mean.shape, generator=generator)
    pixels = (mean + settings.spread * std * noise).round().clamp(0, 255)
    return pixels.to(torch.uint8).view(-1, *info["shape"])
