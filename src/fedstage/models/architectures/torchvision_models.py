"""Networks of torchvision: EfficientNet-B0, ResNet-18, and VGG-19 for small images.

Tan and Le, ICML 2019; He et al., CVPR 2016; Simonyan and Zisserman, ICLR 2015.
"""

from collections import OrderedDict
from functools import partial

from torch import nn

from fedstage.errors import FedstageError
from fedstage.models.layers import normalise
from fedstage.settings.models import EfficientNet, ResNet18, Vgg19


def network(
    settings: EfficientNet | ResNet18 | Vgg19, shape: tuple[int, ...], classes: int
) -> nn.Module:
    """Return the network that the settings are of."""
    if isinstance(settings, EfficientNet):
        return efficientnet(settings, shape, classes)
    if isinstance(settings, ResNet18):
        return residual(settings, shape, classes)
    return vgg(settings, shape, classes)


def efficientnet(settings: EfficientNet, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return EfficientNet-B0 for images [n, 3, H, W], H and W at least 32.

    Raises
    ------
    FedstageError
        If the images do not have 3 channels.
    """
    from torchvision.models import efficientnet_b0  # slow to import

    if shape[0] != 3:
        raise FedstageError(
            f"model = efficientnet_b0: images of {shape[0]} channels: needs 3, red, green and blue"
        )
    dropped = {"dropout": settings.dropout, "stochastic_depth_prob": settings.dropout}
    model: nn.Module = efficientnet_b0(weights=None, num_classes=classes, **dropped)
    return model


def residual(settings: ResNet18, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return ResNet-18 for images [n, C, H, W], H and W at least 32.

    Without norms its convolutions have no biases either, as torchvision builds them.
    """
    from torchvision.models import resnet18  # slow to import

    model = resnet18(
        weights=None, num_classes=classes, norm_layer=partial(normalise, settings.norm)
    )
    if shape[0] != 3:
        model.conv1 = nn.Conv2d(shape[0], 64, 7, stride=2, padding=3, bias=False)
    made: nn.Module = model
    return made


def vgg(settings: Vgg19, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return VGG-19 without batch normalisation for images [n, C, H, W], H and W at least 32.

    The convolutions reduce 32x32 pixels to 512 numbers, which one linear layer maps to classes. It
    replaces the three layers of 4,096 units, which are for 224x224 pixels.
    """
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
