"""EfficientNet-B0: Tan and Le, EfficientNet, ICML 2019; the layers are torchvision's."""

from torch import nn

from fedstage.errors import FedstageError


def efficientnet(channels: int, classes: int) -> nn.Module:
    """Return EfficientNet-B0 for colour images [n, 3, H, W], H and W >= 32.

    Without dropout and stochastic depth, which would draw from torch's global generator.

    Raises
    ------
    FedstageError
        If the images are not in colour.
    """
    from torchvision.models import efficientnet_b0  # slow to import

    if channels != 3:
        raise FedstageError(
            f"model = efficientnet_b0: images of {channels} channels: needs 3, red, green and blue"
        )
    model: nn.Module = efficientnet_b0(
        weights=None, num_classes=classes, dropout=0.0, stochastic_depth_prob=0.0
    )
    return model
