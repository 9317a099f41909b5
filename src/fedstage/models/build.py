"""From the settings of a model to the model."""

import torch
from torch import nn

from fedstage.config import CnnSmall, LogisticRegression, Model, ResNet, ResNetWide, WideResNet
from fedstage.errors import FedstageError
from fedstage.models.cnn_small import cnn_small
from fedstage.models.logistic_regression import logistic_regression
from fedstage.models.resnet import resnet
from fedstage.models.resnet_wide import resnet_wide
from fedstage.models.wide_resnet import wide_resnet


def build(settings: Model, shape: tuple[int, int, int], classes: int) -> nn.Module:
    """Return a model on the CPU that maps float images [n, C, H, W] to logits [n, classes].

    Its parameters are NaN until `fedstage.models.initialisation.initialise` or `load_state_dict`
    sets them; the running statistics of batch normalisation are mean 0, variance 1, 0 batches. The
    global generator stays as it is.

    Parameters
    ----------
    settings : Model
        The model's settings.
    shape : tuple[int, int, int]
        [C, H, W] of an image.
    classes : int
        Number of logits.

    Raises
    ------
    FedstageError
        If the images are too small for the model's pooling or strides.
    """
    _check_size(settings, shape)
    # Torch's constructors draw. Building on the meta device would prevent it, but imports sympy
    # (more than a second in every job); so the draw is made beside the global stream and replaced.
    with torch.random.fork_rng(devices=[]):
        model = _architecture(settings, shape, classes)
    for parameter in model.parameters():
        nn.init.constant_(parameter, torch.nan)
    return model


def _architecture(settings: Model, shape: tuple[int, int, int], classes: int) -> nn.Module:
    match settings:
        case LogisticRegression():
            return logistic_regression(shape, classes)
        case CnnSmall():
            return cnn_small(settings, shape, classes)
        case ResNet():
            return resnet(settings, shape[0], classes)
        case WideResNet():
            return wide_resnet(settings, shape[0], classes)
        case ResNetWide():
            return resnet_wide(settings, shape, classes)


def _check_size(settings: Model, shape: tuple[int, int, int]) -> None:
    smallest = _smallest(settings)
    _, height, width = shape
    if min(height, width) < smallest:
        raise FedstageError(
            f"model = {settings.name}: images of {height}x{width} pixels (shape {list(shape)}): "
            f"needs at least {smallest}x{smallest}"
        )


def _smallest(settings: Model) -> int:
    match settings:
        case LogisticRegression():
            return 1
        case CnnSmall():
            return 4
        case ResNet() | WideResNet():
            return 8
        case ResNetWide():
            return 13
