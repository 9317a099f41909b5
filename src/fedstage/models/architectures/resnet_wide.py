"""The ResNet-8 of FENS: few blocks of many channels, 4.9 million parameters.

Not the CIFAR ResNet-8 of He et al. 2016, which has 78 thousand. The paper gives "ResNet-8" and
18.85 MiB; widths, shortcuts and pooling are as in its released code, without its unused layers.
"""

from collections import OrderedDict

from torch import nn

from fedstage.models.architectures.resnet import Block
from fedstage.models.layers import convolution, normalise
from fedstage.settings.models import Norm, ResNetWide, Shortcut

POOL = 4


def network(settings: ResNetWide, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return a residual network of three blocks with w, 2w and 4w channels, w = `settings.width`.

    Images have `shape` [C, H, W], H and W at least 13. The second and the third block halve height
    and width, with projections (1x1 convolutions) as shortcuts. 4x4 average pooling leaves 2048
    features for 32x32 pixels and w = 128, which one linear layer maps to [n, classes].
    """
    channels, height, width = shape
    first = settings.width
    kind: tuple[Norm, Shortcut] = (settings.norm, "B")
    pooled = [-(-side // 4) // POOL for side in (height, width)]
    return nn.Sequential(
        OrderedDict(
            conv=convolution(channels, first, settings.norm),
            norm=normalise(settings.norm, first),
            relu=nn.ReLU(),
            block1=Block(first, first, 1, *kind),
            block2=Block(first, 2 * first, 2, *kind),
            block3=Block(2 * first, 4 * first, 2, *kind),
            pool=nn.AvgPool2d(POOL),
            flatten=nn.Flatten(),
            linear=nn.Linear(4 * first * pooled[0] * pooled[1], classes),
        )
    )
