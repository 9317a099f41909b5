"""The size of a model in closed form, without torch: for estimates before any job runs."""

from itertools import pairwise
from math import prod

from fedstage.settings.models import (
    Architecture,
    Bert,
    Cnn,
    CnnFedEt,
    CnnSmall,
    DeepMil,
    DistilBert,
    EfficientNet,
    EmbeddingBag,
    LogisticRegression,
    Lstm,
    Norm,
    Perceptron,
    ResNet,
    ResNet18,
    ResNetLower,
    ResNetUpper,
    ResNetWide,
    Transformer,
    Vgg19,
    WideResNet,
    head_of,
)

FLOAT = 4  # bytes of an fp32 number
COUNTER = 8  # bytes of the int64 number of batches that batch normalisation has seen
#: EfficientNet-B0 without its last layer: parameters, running statistics, counters.
_EFFICIENTNET = FLOAT * (4_007_548 + 42_016) + COUNTER * 49


def state_size(settings: Architecture, shape: tuple[int, ...], classes: int) -> int:
    """Return the bytes of a model's state dict: fp32 parameters and buffers, int64 counters.

    `shape` is [C, H, W] of an image, [F] of features or [L] of tokens. The header of a safetensors
    file (about 100 bytes per tensor) is not included. The size is 0 for a model that has no case
    here.
    """
    if more := settings.more_outputs:
        body = settings.model_copy(update={"more_outputs": 0})
        if more == "features":  # a linear layer without its biases
            return state_size(body, shape, classes) - FLOAT * classes
        return state_size(body, shape, classes + more)
    if (head := head_of(settings)) is not None:
        hidden, width = head.hidden, head.width
        body = settings.model_copy(update={"head": None})
        return state_size(body, shape, hidden) + _linear(hidden, width) + _linear(width, classes)
    match settings:
        case LogisticRegression():
            return _linear(prod(shape), settings.outputs or classes)
        case Perceptron():
            widths = (prod(shape), *settings.hidden, classes)
            return sum(_linear(inputs, outputs) for inputs, outputs in pairwise(widths))
        case CnnSmall():
            return _cnn_small(settings, shape, classes)
        case Cnn():
            return _cnn(settings, shape, classes)
        case ResNet():
            blocks = (int(settings.name.removeprefix("resnet")) - 2) // 6
            stages = _stages((16, 16, 32, 64), blocks, settings.norm, settings.shortcut == "B")
            return _stem(shape[0], 16, settings.norm) + stages + _linear(64, classes)
        case ResNetLower():
            width, norm = settings.width, settings.norm
            stage = _stage(width, width, settings.blocks, norm)
            return _stem(shape[0], width, norm) + stage + _linear(width, classes)
        case ResNetUpper():
            width = settings.width
            widths = (width, width, 2 * width, 4 * width)
            stages = _stages(widths, settings.blocks, settings.norm, settings.shortcut == "B")
            return stages + _linear(4 * width, classes)
        case ResNetWide():
            width, pooled = settings.width, prod(-(-side // 4) // 4 for side in shape[1:])
            stages = _stages((width, width, 2 * width, 4 * width), 1, settings.norm, True)
            stem = _stem(shape[0], width, settings.norm)
            return stem + stages + _linear(4 * width * pooled, classes)
        case WideResNet():
            return _wide_resnet(settings.norm, shape[0], classes)
        case EfficientNet():
            return _EFFICIENTNET + _linear(1280, classes)
        case CnnFedEt():
            return _cnn_fed_et(settings.channels, shape, classes)
        case ResNet18():
            return _resnet18(settings.norm, shape[0]) + _linear(512, classes)
        case Vgg19():
            return _vgg19(shape[0]) + _linear(512, classes)
        case DeepMil():
            return _deep_mil(settings.width, shape[0], settings.outputs or classes)
        case DistilBert():
            return _transformer(settings, 0, classes)
        case Bert():
            return _transformer(settings, 2, classes)
        case Lstm():
            return _lstm(settings, classes)
        case EmbeddingBag():
            width = settings.embedding
            return FLOAT * settings.vocabulary * width + _linear(width, classes)
    return 0  # for a model that has no case here


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


def _cnn(settings: Cnn, shape: tuple[int, ...], classes: int) -> int:
    widths = pairwise((shape[0], *settings.channels))
    layers = sum(_stem(before, width, settings.norm) for before, width in widths)
    pooled = prod(side >> len(settings.channels) for side in shape[1:])
    return layers + _linear(settings.channels[-1] * pooled, classes)


def _stem(channels: int, width: int, norm: Norm) -> int:
    return _convolution(channels, width, norm) + _norm(width, norm)


def _stages(widths: tuple[int, ...], blocks: int, norm: Norm, projected: bool) -> int:
    """Return the size of a stage of `blocks` for each width but the first, which is the input's."""
    size = 0
    for before, width in pairwise(widths):
        size += _stage(before, width, blocks, norm)
        if projected and before != width:
            size += _convolution(before, width, norm, kernel=1) + _norm(width, norm)
    return size


def _stage(before: int, width: int, blocks: int, norm: Norm) -> int:
    size = 0
    for inputs in (before, *[width] * (blocks - 1))[:blocks]:
        size += _convolution(inputs, width, norm) + _convolution(width, width, norm)
        size += 2 * _norm(width, norm)
    return size


def _wide_resnet(norm: Norm, channels: int, classes: int) -> int:
    size = _convolution(channels, 16, norm) + _norm(128, norm) + _linear(128, classes)
    for width in (32, 64, 128):
        size += _convolution(width // 2, width, norm, kernel=1)
        for inputs in (width // 2, width):
            size += _norm(inputs, norm) + _convolution(inputs, width, norm)
            size += _norm(width, norm) + _convolution(width, width, norm)
    return size


def _cnn_fed_et(channels: tuple[int, int], shape: tuple[int, ...], classes: int) -> int:
    first, second = channels
    pooled = prod(((side - 4) // 2 - 4) // 2 for side in shape[1:])
    layers = pairwise((second * pooled, 120, 100, 84, 50, classes))
    convolutions = _convolution(shape[0], first, "none", 5) + _convolution(first, second, "none", 5)
    return convolutions + sum(_linear(inputs, outputs) for inputs, outputs in layers)


def _resnet18(norm: Norm, channels: int) -> int:
    widths = (64, 64, 128, 256, 512)
    size = FLOAT * channels * 64 * 49 + _norm(64, norm)
    for before, width in pairwise(widths):
        size += FLOAT * 9 * (before * width + 3 * width * width) + 4 * _norm(width, norm)
        if before != width:
            size += FLOAT * before * width + _norm(width, norm)
    return size


def _vgg19(channels: int) -> int:
    widths = [64] * 2 + [128] * 2 + [256] * 4 + [512] * 8
    return sum(
        _convolution(before, width, "none") for before, width in pairwise((channels, *widths))
    )


def _transformer(settings: Transformer, segments: int, classes: int) -> int:
    width, norm = settings.width, FLOAT * 2 * settings.width
    layer = 4 * _linear(width, width) + 2 * norm
    layer += _linear(width, settings.hidden) + _linear(settings.hidden, width)
    embedded = settings.vocabulary + settings.positions + segments
    embeddings = FLOAT * embedded * width + norm
    return embeddings + settings.layers * layer + _linear(width, width) + _linear(width, classes)


def _lstm(settings: Lstm, classes: int) -> int:
    hidden, inputs = settings.hidden, settings.embedding
    size = FLOAT * settings.vocabulary * inputs + _linear(hidden, classes)
    for _ in range(settings.layers):  # four gates, each with a bias for either input
        size += 4 * (_linear(inputs, hidden) + _linear(hidden, hidden))
        inputs = hidden
    return size


def _deep_mil(width: int, features: int, outputs: int) -> int:
    attention = 2 * _linear(width, width) + _linear(width, 1)
    classifier = _linear(width, 128) + _linear(128, 64) + _linear(64, outputs)
    return _linear(features, width) + attention + classifier


def _convolution(channels: int, width: int, norm: Norm, kernel: int = 3) -> int:
    biases = width if norm == "none" else 0
    return FLOAT * (channels * width * kernel**2 + biases)


def _norm(channels: int, norm: Norm) -> int:
    if norm == "batch":  # weight, bias, running mean, running variance
        return FLOAT * 4 * channels + COUNTER
    return FLOAT * 2 * channels if norm == "group" else 0


def _linear(inputs: int, outputs: int) -> int:
    return FLOAT * (inputs + 1) * outputs
