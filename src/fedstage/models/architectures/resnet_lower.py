"""The beginning of a residual network for CIFAR, as in clients of FedGKT (He et al. 2020)."""

from collections import OrderedDict

from torch import nn

from fedstage.models.architectures.resnet import stage
from fedstage.models.heads import BODY, HEAD
from fedstage.models.layers import convolution, normalise
from fedstage.settings.models import ResNetLower


def network(settings: ResNetLower, shape: tuple[int, ...], classes: int) -> nn.Module:
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
