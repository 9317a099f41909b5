"""A small convolutional network, in the form of LeNet-5."""

from collections import OrderedDict

from torch import nn

from fedstage.models.norms import convolution, normalise
from fedstage.settings.models import CnnSmall


def cnn_small(settings: CnnSmall, shape: tuple[int, int, int], classes: int) -> nn.Module:
    """Return two 3x3 convolutions, each with 2x2 max-pooling, and two linear layers.

    Parameters
    ----------
    settings : CnnSmall
        `width` channels after the first convolution, twice as many after the second; `hidden` units
        between the linear layers.
    shape : tuple[int, int, int]
        [C, H, W] of an image, H and W at least 4.
    classes : int
        Number of logits.
    """
    channels, height, width = shape
    features = 2 * settings.width * (height // 4) * (width // 4)
    return nn.Sequential(
        OrderedDict(
            conv1=convolution(channels, settings.width, settings.norm),
            norm1=normalise(settings.norm, settings.width),
            relu1=nn.ReLU(),
            pool1=nn.MaxPool2d(2),
            conv2=convolution(settings.width, 2 * settings.width, settings.norm),
            norm2=normalise(settings.norm, 2 * settings.width),
            relu2=nn.ReLU(),
            pool2=nn.MaxPool2d(2),
            flatten=nn.Flatten(),
            linear1=nn.Linear(features, settings.hidden),
            relu3=nn.ReLU(),
            linear2=nn.Linear(settings.hidden, classes),
        )
    )
