"""Residual networks for CIFAR: He et al., Deep Residual Learning, CVPR 2016, section 4.2."""

from collections import OrderedDict

from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, pad, relu

from fedstage.models.layers import ResidualBlock, convolution, normalise
from fedstage.settings.models import Norm, ResNet, Shortcut

WIDTHS = (16, 32, 64)


class PaddedShortcut(nn.Module):
    """Shortcut A, without parameters: every `stride`-th pixel, and zeros for `extra` channels."""

    def __init__(self, stride: int, extra: int) -> None:
        super().__init__()
        self.stride, self.extra = stride, extra

    def forward(self, images: Tensor) -> Tensor:
        """Map [n, C, H, W] to [n, C + extra, ceil(H / stride), ceil(W / stride)]."""
        # Pools of one pixel: the gradient of a slice would have another memory format.
        return pad(avg_pool2d(images, 1, self.stride), (0, 0, 0, 0, 0, self.extra))


class Block(ResidualBlock):
    """Two 3x3 convolutions next to a shortcut: relu(f(x) + shortcut(x))."""

    def __init__(
        self, channels: int, width: int, stride: int, norm: Norm, shortcut: Shortcut
    ) -> None:
        super().__init__()
        self.conv1 = convolution(channels, width, norm, stride=stride)
        self.norm1 = normalise(norm, width)
        self.conv2 = convolution(width, width, norm)
        self.norm2 = normalise(norm, width)
        self.shortcut = _shortcut(channels, width, stride, norm, shortcut)

    def forward(self, images: Tensor) -> Tensor:
        """Map [n, channels, H, W] to [n, width, ceil(H / stride), ceil(W / stride)]."""
        hidden = relu(self.norm1(self.conv1(images)))
        return relu(self.norm2(self.conv2(hidden)) + self.shortcut(images))


def network(settings: ResNet, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return a residual network of 6n+2 layers for images [C, H, W], H and W at least 8.

    Three stages of n blocks with 16, 32 and 64 channels; the second and the third halve height and
    width. Global average pooling and one linear layer give [n, classes].
    """
    blocks = (int(settings.name.removeprefix("resnet")) - 2) // 6
    kind = (blocks, settings.norm, settings.shortcut)
    return nn.Sequential(
        OrderedDict(
            conv=convolution(shape[0], WIDTHS[0], settings.norm),
            norm=normalise(settings.norm, WIDTHS[0]),
            relu=nn.ReLU(),
            stage1=stage(WIDTHS[0], WIDTHS[0], 1, *kind),
            stage2=stage(WIDTHS[0], WIDTHS[1], 2, *kind),
            stage3=stage(WIDTHS[1], WIDTHS[2], 2, *kind),
            pool=nn.AdaptiveAvgPool2d(1),
            flatten=nn.Flatten(),
            linear=nn.Linear(WIDTHS[2], classes),
        )
    )


def stage(
    channels: int, width: int, stride: int, blocks: int, norm: Norm, shortcut: Shortcut
) -> nn.Module:
    """Return residual blocks with `width` channels; the first one has the stride."""
    inputs = [(channels, stride), *[(width, 1)] * (blocks - 1)][:blocks]
    return nn.Sequential(*(Block(before, width, step, norm, shortcut) for before, step in inputs))


def _shortcut(channels: int, width: int, stride: int, norm: Norm, shortcut: Shortcut) -> nn.Module:
    if channels == width:
        return nn.Identity()
    if shortcut == "A":
        return PaddedShortcut(stride, width - channels)
    projection = convolution(channels, width, norm, kernel=1, stride=stride)
    return nn.Sequential(OrderedDict(conv=projection, norm=normalise(norm, width)))
