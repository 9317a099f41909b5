"""Residual networks, of He et al., Deep Residual Learning, CVPR 2016, section 4.2, and others.

FedGKT (He et al. 2020) has the beginning of one on clients, and the rest on the server. FENS has a
ResNet-8 of few blocks of many channels, 4.9 million parameters; that of He et al. has 78 thousand.
Its paper gives "ResNet-8" and 18.85 MiB; widths, shortcuts and pooling are as in its released code,
without its unused layers.
"""

from collections import OrderedDict

from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, pad, relu

from fedstage.models.heads import BODY, HEAD
from fedstage.models.layers import ResidualBlock, convolution, normalise
from fedstage.settings.models import Norm, ResNet, ResNetLower, ResNetUpper, ResNetWide, Shortcut


def network(
    settings: ResNet | ResNetLower | ResNetUpper | ResNetWide, shape: tuple[int, ...], classes: int
) -> nn.Module:
    """Return the network that the settings are of."""
    if isinstance(settings, ResNet):
        return for_cifar(settings, shape, classes)
    if isinstance(settings, ResNetLower):
        return lower(settings, shape, classes)
    if isinstance(settings, ResNetUpper):
        return upper(settings, shape, classes)
    return wide(settings, shape, classes)


WIDTHS = (16, 32, 64)
POOL = 4  # of the wide one


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


def for_cifar(settings: ResNet, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return a residual network of 6n+2 layers for CIFAR, for images [C, H, W], H and W at least 8.

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


def lower(settings: ResNetLower, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return a model of two parts for images [C, H, W].

    Its `body`, a convolution and residual blocks, gives feature maps [n, width, H, W]. Its `head`,
    global average pooling and a linear layer, gives their logits [n, classes].
    """
    width, norm = settings.width, settings.norm
    body = OrderedDict(
        conv=convolution(shape[0], width, norm),
        norm=normalise(norm, width),
        relu=nn.ReLU(),
        stage=stage(width, width, 1, settings.blocks, norm, "A"),
    )
    head = OrderedDict(
        pool=nn.AdaptiveAvgPool2d(1), flatten=nn.Flatten(), linear=nn.Linear(width, classes)
    )
    parts = {BODY: nn.Sequential(body), HEAD: nn.Sequential(head)}
    return nn.Sequential(OrderedDict(parts))


def upper(settings: ResNetUpper, shape: tuple[int, ...], classes: int) -> nn.Module:
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


def wide(settings: ResNetWide, shape: tuple[int, ...], classes: int) -> nn.Module:
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
