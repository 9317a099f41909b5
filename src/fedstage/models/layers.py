"""Layers that architectures share: norms, convolutions, residual blocks, one output, and masks."""

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from fedstage.errors import FedstageError
from fedstage.settings.models import Model, Norm


def normalise(norm: Norm, channels: int) -> nn.Module:
    """Return a normalisation layer for feature maps [n, channels, H, W].

    ``batch`` is batch normalisation (Ioffe and Szegedy 2015), ``group`` group normalisation (Wu and
    He 2018), and ``none`` the identity. The output of group normalisation does not depend on the
    batch, and it has no running statistics to average over clients.
    """
    if norm == "batch":
        return nn.BatchNorm2d(channels)
    if norm == "group":
        return nn.GroupNorm(groups(channels), channels)
    return nn.Identity()


def groups(channels: int) -> int:
    """Return the number of groups of group normalisation: the first divisor among 8, 4, 2, 1.

    Wu and He's 32 groups suit widths from 64, but do not divide the 16 channels of a CIFAR network.
    Eight groups have at least two channels each from a width of 16.
    """
    return next(number for number in (8, 4, 2, 1) if channels % number == 0)


class ResidualBlock(nn.Module):
    """A block whose residual branch ends in `conv2`, which follows or precedes `norm2`."""

    conv2: nn.Conv2d
    norm2: nn.Module


def convolution(
    channels_in: int, channels_out: int, norm: Norm, kernel: int = 3, stride: int = 1
) -> nn.Conv2d:
    """Return a convolution that keeps height and width, apart from its stride.

    It has a bias only in networks without norms: a norm subtracts the mean, or adds its own bias.
    """
    return nn.Conv2d(
        channels_in, channels_out, kernel, stride, padding=kernel // 2, bias=norm == "none"
    )


class OneOutput(nn.Module):
    """Logits (0, z) of two classes from one output z.

    Their softmax is the sigmoid of z, and their cross entropy the binary cross entropy, with the
    same derivative. So everything that computes with logits works with one output as well.
    """

    def forward(self, outputs: Tensor) -> Tensor:
        """Map z [n, 1] to (0, z) [n, 2]."""
        return pad(outputs, (1, 0))


def one_output(settings: Model, classes: int) -> nn.Module:
    """Return the layer after a model's one output.

    Raises
    ------
    FedstageError
        If there are not two classes.
    """
    if classes != 2:
        raise FedstageError(
            f"model = {settings.name}: outputs = 1: only for 2 classes, and the data has {classes}"
        )
    return OneOutput()


# --- texts ----------------------------------------------------------------------------------------

PADDING = 0  #: the number of the padding token


def attended(tokens: torch.Tensor) -> torch.Tensor:
    """Return a mask, bool [n, L], of the tokens [n, L] that belong to a text."""
    return tokens != PADDING
