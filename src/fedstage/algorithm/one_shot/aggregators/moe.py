"""Mixture of experts: f(z, x) = sum_i G(x)_i z_i(x); only the gate G is trained (FENS, B.4).

The gate is a small network on the image: two blocks of convolution, ReLU and 2x2 max-pooling, two
linear layers with ReLU, and one output per client. The paper gives no widths, and only states that
G(x) is in [0, 1]^M: a softmax is the natural reading, and the one of the released code. The
released code's widths are as in LeNet-5 (62,856 numbers for 20 clients and colour images of 32x32
pixels).
"""

from math import prod, sqrt

import torch
from torch.nn.functional import conv2d, linear, max_pool2d

from fedstage.algorithm.one_shot.aggregators import Knowledge
from fedstage.errors import FedstageError
from fedstage.settings.aggregators import Moe
from fedstage.weights import Weights


def parameters(settings: Moe, known: Knowledge, generator: torch.Generator) -> Weights:
    """Return the gate's weights, drawn like the weights of models (`models.initialisation`).

    Raises
    ------
    FedstageError
        If samples are not images, or the images are too small for two blocks.
    """
    first, second = settings.channels
    kernel = (settings.kernel, settings.kernel)
    shapes = {
        "conv1": (first, known.shape[0], *kernel),
        "conv2": (second, first, *kernel),
        "linear1": (settings.hidden[0], second * prod(_sides(settings, known.shape))),
        "linear2": (settings.hidden[1], settings.hidden[0]),
        "head": (known.members, settings.hidden[1]),
    }
    drawn: Weights = {}
    for name, shape in shapes.items():
        drawn |= _layer(name, shape, generator)
    return drawn


def combine(
    settings: Moe, parameters: Weights, logits: torch.Tensor, pixels: torch.Tensor | None
) -> torch.Tensor:
    """Return sum_i G(x)_i z_i."""
    assert pixels is not None, "the aggregator sees images"
    return torch.einsum("nm,mnc->nc", gate(settings, parameters, pixels), logits)


def gate(settings: Moe, parameters: Weights, pixels: torch.Tensor) -> torch.Tensor:
    """Return G(x) [n, M] of images [n, channels, height, width]."""

    def layer(name: str) -> tuple[torch.Tensor, torch.Tensor]:
        return parameters[f"{name}.weight"], parameters[f"{name}.bias"]

    hidden = pixels
    for name in ("conv1", "conv2"):
        hidden = max_pool2d(conv2d(hidden, *layer(name), padding=settings.padding).relu(), 2)
    hidden = hidden.flatten(1)
    for name in ("linear1", "linear2"):
        hidden = linear(hidden, *layer(name)).relu()
    return linear(hidden, *layer("head")).softmax(1)


def _sides(settings: Moe, shape: tuple[int, ...]) -> tuple[int, int]:
    """Return height and width after the second block."""
    if len(shape) != 3:
        raise FedstageError(
            f"aggregator = 'moe': samples of shape {list(shape)}: only for images, [C, H, W]"
        )
    sides = list(shape[1:])
    for _ in settings.channels:
        sides = [(side + 2 * settings.padding - settings.kernel + 1) // 2 for side in sides]
        if min(sides) < 1:
            raise FedstageError(
                f"aggregator.kernel = {settings.kernel}, padding = {settings.padding}: too large "
                f"for images of {shape[1]}x{shape[2]} pixels; use a smaller kernel or more padding"
            )
    return sides[0], sides[1]


def _layer(name: str, shape: tuple[int, ...], generator: torch.Generator) -> Weights:
    """Draw a layer: a convolution from N(0, 2/fan_in), biases 0; a linear one uniformly."""
    fan_in = prod(shape[1:])
    if len(shape) == 4:
        weight = torch.empty(shape).normal_(0.0, sqrt(2 / fan_in), generator=generator)
        return {f"{name}.weight": weight, f"{name}.bias": torch.zeros(shape[0])}
    bound = 1 / sqrt(fan_in)
    return {
        f"{name}.{part}": torch.empty(size).uniform_(-bound, bound, generator=generator)
        for part, size in (("weight", shape), ("bias", shape[:1]))
    }
