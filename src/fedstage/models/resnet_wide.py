"""The ResNet-8 of FENS: few blocks of many channels, 4.9 million parameters.

Not the CIFAR ResNet-8 of He et al. 2016, which has 78 thousand. The paper says "ResNet-8" and 18.85
MiB; widths, shortcuts and pooling are those of its released code, without the layers there that
nothing passes through.
"""

from collections import OrderedDict

from torch import nn

from fedstage.models.norms import convolution, normalise
from fedstage.models.resnet import Block
from fedstage.settings.models import ResNet, ResNetWide

POOL = 4


def resnet_wide(settings: ResNetWide, shape: tuple[int, int, int], classes: int) -> nn.Module:
    """Return a residual network of three blocks with w, 2w and 4w channels, w = `settings.width`.

    The second and the third block halve height and width, with projections (1x1 convolutions) as
    shortcuts. 4x4 average pooling and one linear layer on what is left, 2048 features of images of
    32x32 pixels for w = 128, give [n, classes].

    Parameters
    ----------
    shape : tuple[int, int, int]
        [C, H, W] of an image, H and W at least 13.
    """
    channels, height, width = shape
    first = settings.width
    like = ResNet(name="resnet8", norm=settings.norm, shortcut="B")
    left = [-(-side // 4) // POOL for side in (height, width)]
    return nn.Sequential(
        OrderedDict(
            conv=convolution(channels, first, settings.norm),
            norm=normalise(settings.norm, first),
            relu=nn.ReLU(),
            block1=Block(first, first, 1, like),
            block2=Block(first, 2 * first, 2, like),
            block3=Block(2 * first, 4 * first, 2, like),
            pool=nn.AvgPool2d(POOL),
            flatten=nn.Flatten(),
            linear=nn.Linear(4 * first * left[0] * left[1], classes),
        )
    )
