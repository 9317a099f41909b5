"""Normalisation layers, and the convolutions that they follow."""

from torch import nn

from fedstage.settings.models import Norm


def normalise(norm: Norm, channels: int) -> nn.Module:
    """Return a normalisation layer for feature maps [n, channels, H, W].

    ``batch`` is batch normalisation (Ioffe and Szegedy 2015), ``group`` group normalisation (Wu and
    He 2018), whose output does not depend on the batch and which has no running statistics to
    average over clients, ``none`` the identity.
    """
    if norm == "batch":
        return nn.BatchNorm2d(channels)
    if norm == "group":
        return nn.GroupNorm(groups(channels), channels)
    return nn.Identity()


def groups(channels: int) -> int:
    """Return the number of groups of group normalisation: 8, or what of 4, 2, 1 divides `channels`.

    Wu and He's 32 groups are for widths from 64 on: with them the 16 channels of a CIFAR network
    could not be divided. Eight leave at least two channels a group from a width of 16 on.
    """
    return next(number for number in (8, 4, 2, 1) if channels % number == 0)


def convolution(
    channels_in: int, channels_out: int, norm: Norm, kernel: int = 3, stride: int = 1
) -> nn.Conv2d:
    """Return a convolution that keeps height and width (but for its stride).

    It has a bias in networks without norms only: a norm subtracts the mean, or adds its own bias.
    """
    return nn.Conv2d(
        channels_in, channels_out, kernel, stride, padding=kernel // 2, bias=norm == "none"
    )
