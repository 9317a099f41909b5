"""The rest of a residual network for CIFAR, as in the server of FedGKT (He et al. 2020)."""

from collections import OrderedDict

from torch import nn

from fedstage.models.architectures.resnet import stage
from fedstage.settings.models import ResNetUpper


def network(settings: ResNetUpper, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return a model of 6n + 1 layers for feature maps [width, H, W] of images [C, H, W].

    Three stages of n blocks with once, twice and 4 times `width` channels; the second and the third
    halve height and width. Global average pooling and one linear layer give [n, classes].
    """
    width, kind = settings.width, (settings.blocks, settings.norm, settings.shortcut)
    return nn.Sequential(
        OrderedDict(
            stage1=stage(width, width, 1, *kind),
            stage2=stage(width, 2 * width, 2, *kind),
            stage3=stage(2 * width, 4 * width, 2, *kind),
            pool=nn.AdaptiveAvgPool2d(1),
            flatten=nn.Flatten(),
            linear=nn.Linear(4 * width, classes),
        )
    )
