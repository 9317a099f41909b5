"""ResNet-18 (He et al., CVPR 2016); the layers are torchvision's."""

from functools import partial

from torch import nn

from fedstage.models.layers import normalise
from fedstage.settings.models import ResNet18


def network(settings: ResNet18, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return ResNet-18 for images [n, C, H, W], H and W at least 32.

    Without norms its convolutions have no biases either, as torchvision builds them.
    """
    from torchvision.models import resnet18  # slow to import

    model = resnet18(
        weights=None, num_classes=classes, norm_layer=partial(normalise, settings.norm)
    )
    if shape[0] != 3:
        model.conv1 = nn.Conv2d(shape[0], 64, 7, stride=2, padding=3, bias=False)
    network: nn.Module = model
    return network
