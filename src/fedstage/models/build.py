"""From the settings of a model to the model."""

import torch
from torch import nn

from fedstage.errors import FedstageError
from fedstage.models.cnn_small import cnn_small
from fedstage.models.deep_mil import deep_mil
from fedstage.models.distilbert import distilbert
from fedstage.models.efficientnet import efficientnet
from fedstage.models.logistic_regression import logistic_regression
from fedstage.models.resnet import resnet
from fedstage.models.resnet_wide import resnet_wide
from fedstage.models.wide_resnet import wide_resnet
from fedstage.settings.models import (
    CnnSmall,
    DeepMil,
    DistilBert,
    EfficientNet,
    LogisticRegression,
    Model,
    ResNet,
    ResNetWide,
    WideResNet,
)


def build(settings: Model, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return a model on the CPU that maps float images [n, C, H, W] to logits [n, classes].

    Of data whose samples are no images it maps what `shape` is of.

    Its parameters are NaN until `fedstage.models.initialisation.initialise` or `load_state_dict`
    sets them; the running statistics of batch normalisation are mean 0, variance 1, 0 batches. The
    global generator stays as it is.

    Parameters
    ----------
    settings : Model
        The model's settings.
    shape : tuple[int, ...]
        [C, H, W] of an image; [F] of features, or of an instance of a bag; [L] of tokens.
    classes : int
        Number of logits.

    Raises
    ------
    FedstageError
        If the images are too small for the model's pooling or strides, or the samples of a kind or
        the classes of a number that the model is not for.
    """
    _check_size(settings, shape)
    # Torch's constructors draw. Building on the meta device would prevent it, but imports sympy
    # (more than a second in every job); so the draw is made beside the global stream and replaced.
    with torch.random.fork_rng(devices=[]):
        model = _architecture(settings, shape, classes)
    for parameter in model.parameters():
        nn.init.constant_(parameter, torch.nan)
    return model


def _architecture(settings: Model, shape: tuple[int, ...], classes: int) -> nn.Module:
    match settings:
        case LogisticRegression():
            return logistic_regression(settings, shape, classes)
        case CnnSmall():
            return cnn_small(settings, _image(shape), classes)
        case ResNet():
            return resnet(settings, shape[0], classes)
        case WideResNet():
            return wide_resnet(settings, shape[0], classes)
        case EfficientNet():
            return efficientnet(shape[0], classes)
        case DeepMil():
            return deep_mil(settings, shape[0], classes)
        case ResNetWide():
            return resnet_wide(settings, _image(shape), classes)
        case DistilBert():
            return distilbert(settings, shape[0], classes)


def _image(shape: tuple[int, ...]) -> tuple[int, int, int]:
    channels, height, width = shape
    return channels, height, width


def _check_size(settings: Model, shape: tuple[int, ...]) -> None:
    smallest = _smallest(settings)
    if smallest is None:
        return
    if len(shape) != 3:
        raise FedstageError(
            f"model = {settings.name}: samples of shape {list(shape)}: needs images, [C, H, W]"
        )
    _, height, width = shape
    if min(height, width) < smallest:
        raise FedstageError(
            f"model = {settings.name}: images of {height}x{width} pixels (shape {list(shape)}): "
            f"needs at least {smallest}x{smallest}"
        )


def _smallest(settings: Model) -> int | None:
    """Return the smallest height and width of images; None where any samples will do."""
    match settings:
        case LogisticRegression() | DeepMil() | DistilBert():
            return None
        case EfficientNet():
            return 32
        case CnnSmall():
            return 4
        case ResNet() | WideResNet():
            return 8
        case ResNetWide():
            return 13
