"""The size of a model in closed form, without torch: for estimates before any job runs."""

from math import prod

from fedstage.settings.models import (
    CnnSmall,
    DeepMil,
    DistilBert,
    EfficientNet,
    LogisticRegression,
    Model,
    Norm,
    ResNet,
    ResNetWide,
    WideResNet,
)

FLOAT = 4  # bytes of an fp32 number
COUNTER = 8  # bytes of the int64 number of batches that batch normalisation has seen
#: EfficientNet-B0 for colour images but its last layer: parameters, running statistics, counters.
_EFFICIENTNET = FLOAT * (4_007_548 + 42_016) + COUNTER * 49


def state_size(settings: Model, shape: tuple[int, ...], classes: int) -> int:
    """Return the bytes of a model's state dict: fp32 parameters and buffers, int64 counters.

    The header of a safetensors file (some 100 bytes a tensor) comes on top.

    Parameters
    ----------
    settings : Model
        The model's settings.
    shape : tuple[int, ...]
        [C, H, W] of an image; [F] of features.
    classes : int
        Number of logits.
    """
    match settings:
        case LogisticRegression():
            return _linear(prod(shape), settings.outputs or classes)
        case CnnSmall():
            return _cnn_small(settings, shape, classes)
        case ResNet():
            return _resnet(settings, shape[0], classes)
        case WideResNet():
            return _wide_resnet(settings, shape[0], classes)
        case EfficientNet():
            return _EFFICIENTNET + _linear(1280, classes)
        case DeepMil():
            return _deep_mil(settings, shape[0], settings.outputs or classes)
        case ResNetWide():
            return _resnet_wide(settings, shape, classes)
        case DistilBert():
            return _distilbert(settings, classes)


def _cnn_small(settings: CnnSmall, shape: tuple[int, ...], classes: int) -> int:
    channels, height, width = shape
    first, second, norm = settings.width, 2 * settings.width, settings.norm
    return (
        _convolution(channels, first, norm)
        + _norm(first, norm)
        + _convolution(first, second, norm)
        + _norm(second, norm)
        + _linear(second * (height // 4) * (width // 4), settings.hidden)
        + _linear(settings.hidden, classes)
    )


def _resnet(settings: ResNet, channels: int, classes: int) -> int:
    blocks = (int(settings.name.removeprefix("resnet")) - 2) // 6
    norm = settings.norm
    return (
        _convolution(channels, 16, norm)
        + _norm(16, norm)
        + _block(16, 16, norm)
        + (blocks - 1) * _block(16, 16, norm)
        + sum(
            _block(width // 2, width, norm)
            + _shortcut(settings, width // 2, width)
            + (blocks - 1) * _block(width, width, norm)
            for width in (32, 64)
        )
        + _linear(64, classes)
    )


def _block(channels: int, width: int, norm: Norm) -> int:
    return (
        _convolution(channels, width, norm)
        + _convolution(width, width, norm)
        + 2 * _norm(width, norm)
    )


def _shortcut(settings: ResNet, channels: int, width: int) -> int:
    if settings.shortcut == "A":
        return 0
    return _convolution(channels, width, settings.norm, kernel=1) + _norm(width, settings.norm)


def _resnet_wide(settings: ResNetWide, shape: tuple[int, ...], classes: int) -> int:
    channels, height, width = shape
    first, norm = settings.width, settings.norm
    left = (-(-height // 4) // 4) * (-(-width // 4) // 4)
    return (
        _convolution(channels, first, norm)
        + _norm(first, norm)
        + _block(first, first, norm)
        + sum(
            _block(wide // 2, wide, norm)
            + _convolution(wide // 2, wide, norm, kernel=1)
            + _norm(wide, norm)
            for wide in (2 * first, 4 * first)
        )
        + _linear(4 * first * left, classes)
    )


def _wide_resnet(settings: WideResNet, channels: int, classes: int) -> int:
    norm = settings.norm
    return (
        _convolution(channels, 16, norm)
        + sum(
            _pre_activation_block(width // 2, width, norm)
            + _convolution(width // 2, width, norm, kernel=1)
            + _pre_activation_block(width, width, norm)
            for width in (32, 64, 128)
        )
        + _norm(128, norm)
        + _linear(128, classes)
    )


def _distilbert(settings: DistilBert, classes: int) -> int:
    width, norm = settings.width, FLOAT * 2 * settings.width
    layer = 4 * _linear(width, width) + 2 * norm
    layer += _linear(width, settings.hidden) + _linear(settings.hidden, width)
    return (
        FLOAT * (settings.vocabulary + settings.positions) * width
        + norm
        + settings.layers * layer
        + _linear(width, width)
        + _linear(width, classes)
    )


def _deep_mil(settings: DeepMil, features: int, outputs: int) -> int:
    width = settings.width
    return (
        _linear(features, width)
        + 2 * _linear(width, width)
        + _linear(width, 1)
        + _linear(width, 128)
        + _linear(128, 64)
        + _linear(64, outputs)
    )


def _pre_activation_block(channels: int, width: int, norm: Norm) -> int:
    return (
        _norm(channels, norm)
        + _convolution(channels, width, norm)
        + _norm(width, norm)
        + _convolution(width, width, norm)
    )


def _convolution(channels: int, width: int, norm: Norm, kernel: int = 3) -> int:
    biases = width if norm == "none" else 0
    return FLOAT * (channels * width * kernel**2 + biases)


def _norm(channels: int, norm: Norm) -> int:
    if norm == "batch":  # weight, bias, running mean, running variance
        return FLOAT * 4 * channels + COUNTER
    return FLOAT * 2 * channels if norm == "group" else 0


def _linear(inputs: int, outputs: int) -> int:
    return FLOAT * (inputs + 1) * outputs
