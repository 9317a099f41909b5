"""Linear layers: logistic regression, also on sparse codes, and the multilayer perceptron."""

from collections import OrderedDict
from itertools import pairwise
from math import prod

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, one_hot, pad

from fedstage.models.layers import one_output
from fedstage.settings.models import LogisticRegression, Perceptron, Safle


def network(
    settings: LogisticRegression | Perceptron | Safle, shape: tuple[int, ...], classes: int
) -> nn.Module:
    """Return the network that the settings are of."""
    if isinstance(settings, Safle):
        codes = Codes(settings, prod(shape))
        last = nn.Linear(codes.groups * 2**settings.group, classes)
        return nn.Sequential(OrderedDict(flatten=nn.Flatten(), codes=codes, linear=last))
    if isinstance(settings, LogisticRegression):
        return logistic_regression(settings, shape, classes)
    return mlp(settings, shape, classes)


def logistic_regression(
    settings: LogisticRegression, shape: tuple[int, ...], classes: int
) -> nn.Module:
    """Return a linear layer on the flattened sample: one output per class, or one for two."""
    layers: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
    layers["linear"] = nn.Linear(prod(shape), settings.outputs or classes)
    if settings.outputs == 1:
        layers["logits"] = one_output(settings, classes)
    return nn.Sequential(layers)


def mlp(settings: Perceptron, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return linear layers on the flattened sample, with ReLU between them."""
    layers: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
    widths = (prod(shape), *settings.hidden, classes)
    for number, (inputs, outputs) in enumerate(pairwise(widths), start=1):
        if number > 1:
            layers[f"relu{number - 1}"] = nn.ReLU()
        layers[f"linear{number}"] = nn.Linear(inputs, outputs)
    return nn.Sequential(layers)


_BOUND = 3.0  # standard deviations


class Codes(nn.Module):
    """The map of SAFLe (Bacellar et al., CVPR 2026): features to an indicator for each group.

    With step h = 6 / k, bin j of bucketing l of L has the centre -3 + h (j + (l + 1) / (L + 1)) and
    the width 2 h. A feature's bit for the bin is 1 if it is in it.
    """

    def __init__(self, settings: Safle, width: int) -> None:
        super().__init__()
        self.size, self.step = settings.group, 2 * _BOUND / settings.bins
        offsets = torch.arange(1, settings.bucketings + 1) / (settings.bucketings + 1)
        places = torch.arange(settings.bins) + offsets[:, None]
        bits = width * places.numel()
        self.groups = -(-bits // self.size)
        generator = torch.Generator().manual_seed(settings.shuffling)
        fixed = {
            "centres": places.flatten() * self.step - _BOUND,
            "order": torch.randperm(bits, generator=generator),
            "powers": 2 ** torch.arange(self.size),
        }
        for name, value in fixed.items():
            self.register_buffer(name, value, persistent=False)

    centres: Tensor
    order: Tensor
    powers: Tensor

    def forward(self, features: Tensor) -> Tensor:
        """Map features [n, d] to indicators [n, groups 2^group], one of each group 1."""
        seen = layer_norm(features, features.shape[1:]).clamp(-_BOUND, _BOUND)
        inside = (seen[:, :, None] - self.centres).abs() < self.step
        bits = inside.flatten(1)[:, self.order]
        bits = pad(bits, (0, self.groups * self.size - bits.shape[1]))
        codes = (bits.unflatten(1, (self.groups, self.size)) * self.powers).sum(2)
        return one_hot(codes, 2**self.size).flatten(1).to(features.dtype)
