"""VGG-19 without batch normalisation (Simonyan and Zisserman, ICLR 2015), for small images.

The convolutions are torchvision's. They reduce 32x32 pixels to 512 numbers, which one linear layer
maps to classes. It replaces the three layers of 4,096 units, which are for 224x224 pixels.
"""

from collections import OrderedDict

from torch import nn

from fedstage.settings.models import Vgg19


def network(settings: Vgg19, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return VGG-19 for images [n, C, H, W], H and W at least 32."""
    from torchvision.models import vgg19  # slow to import

    features = vgg19(weights=None, num_classes=1, init_weights=False).features
    if shape[0] != 3:
        features[0] = nn.Conv2d(shape[0], 64, 3, padding=1)
    return nn.Sequential(
        OrderedDict(
            features=features,
            pool=nn.AdaptiveAvgPool2d(1),
            flatten=nn.Flatten(),
            linear=nn.Linear(512, classes),
        )
    )
