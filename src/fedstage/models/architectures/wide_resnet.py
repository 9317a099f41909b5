"""The wide residual network WRN-16-2 (Zagoruyko and Komodakis, BMVC 2016)."""

from collections import OrderedDict

from torch import Tensor, nn
from torch.nn.functional import relu

from fedstage.models.layers import ResidualBlock, convolution, normalise
from fedstage.settings.models import Norm, WideResNet

STEM = 16
WIDTHS = (32, 64, 128)
BLOCKS = 2  # per group: 16 = 6 * 2 + 4 layers, counting the projections


class PreActivationBlock(ResidualBlock):
    """Norm and ReLU before each of two 3x3 convolutions, next to a shortcut.

    Where the number of channels changes, the shortcut is a 1x1 convolution of the activated input.
    """

    def __init__(self, channels: int, width: int, stride: int, norm: Norm) -> None:
        super().__init__()
        self.norm1 = normalise(norm, channels)
        self.conv1 = convolution(channels, width, norm, stride=stride)
        self.norm2 = normalise(norm, width)
        self.conv2 = convolution(width, width, norm)
        self.projection = None
        if channels != width:
            self.projection = convolution(channels, width, norm, kernel=1, stride=stride)

    def forward(self, images: Tensor) -> Tensor:
        """Map [n, channels, H, W] to [n, width, ceil(H / stride), ceil(W / stride)]."""
        activated = relu(self.norm1(images))
        shortcut = images if self.projection is None else self.projection(activated)
        branch: Tensor = self.conv2(relu(self.norm2(self.conv1(activated))))
        return branch + shortcut


def network(settings: WideResNet, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return WRN-16-2 for images [C, H, W], H and W at least 8, without dropout.

    Three groups of two blocks with 32, 64 and 128 channels; the second and the third halve height
    and width. Norm, ReLU, global average pooling and one linear layer give [n, classes].
    """
    norm = settings.norm
    return nn.Sequential(
        OrderedDict(
            conv=convolution(shape[0], STEM, norm),
            group1=_group(STEM, WIDTHS[0], 1, norm),
            group2=_group(WIDTHS[0], WIDTHS[1], 2, norm),
            group3=_group(WIDTHS[1], WIDTHS[2], 2, norm),
            norm=normalise(norm, WIDTHS[2]),
            relu=nn.ReLU(),
            pool=nn.AdaptiveAvgPool2d(1),
            flatten=nn.Flatten(),
            linear=nn.Linear(WIDTHS[2], classes),
        )
    )


def _group(channels: int, width: int, stride: int, norm: Norm) -> nn.Module:
    first = PreActivationBlock(channels, width, stride, norm)
    return nn.Sequential(
        first, *(PreActivationBlock(width, width, 1, norm) for _ in range(BLOCKS - 1))
    )
