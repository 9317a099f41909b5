"""EfficientNet-B0 (Tan and Le, ICML 2019); the layers are torchvision's."""

from torch import nn

from fedstage.errors import FedstageError
from fedstage.settings.models import EfficientNet


def network(settings: EfficientNet, shape: tuple[int, ...], classes: int) -> nn.Module:
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
