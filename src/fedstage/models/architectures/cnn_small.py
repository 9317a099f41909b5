"""A small convolutional network, in the form of LeNet-5."""

from collections import OrderedDict

from torch import nn

from fedstage.models.layers import convolution, normalise
from fedstage.settings.models import CnnSmall


def network(settings: CnnSmall, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return two 3x3 convolutions, each with 2x2 max-pooling, and two linear layers.

    Images have `shape` [C, H, W], H and W at least 4.
    """
    channels, height, width = shape
    first, second, norm = settings.width, 2 * settings.width, settings.norm
    return nn.Sequential(
        OrderedDict(
            conv1=convolution(channels, first, norm),
            norm1=normalise(norm, first),
            relu1=nn.ReLU(),
            pool1=nn.MaxPool2d(2),
            conv2=convolution(first, second, norm),
            norm2=normalise(norm, second),
            relu2=nn.ReLU(),
            pool2=nn.MaxPool2d(2),
            flatten=nn.Flatten(),
            linear1=nn.Linear(second * (height // 4) * (width // 4), settings.hidden),
            relu3=nn.ReLU(),
            linear2=nn.Linear(settings.hidden, classes),
        )
    )
