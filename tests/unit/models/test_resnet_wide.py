"""The wide ResNet-8: sizes of the published code, and its layers by hand."""

import pytest
import torch
from torch.nn import functional

from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.models import ResNetWide

CIFAR = (3, 32, 32)


def settings(**changes):
    return ResNetWide(name="resnet8_wide", **changes)


def initialised(chosen, shape=CIFAR, classes=10):
    model = build(chosen, shape, classes)
    initialise(model, torch_generator(0, "models"))
    return model


def images(shape=CIFAR, number=3):
    return torch.randn(number, *shape, generator=torch_generator(1, "images"))


def parameters(chosen, classes=10):
    return sum(value.numel() for value in build(chosen, CIFAR, classes).parameters())


def test_parameters_are_those_of_the_released_code():
    assert parameters(settings()) == 4_911_754
    assert parameters(settings(), classes=100) == 4_911_754 + 90 * 2049


def test_the_downsized_model_takes_as_much_room_as_the_papers():
    """FENS, Table 4: 17.95 MiB for 20 models. The widths are not published; 28 comes nearest."""
    sizes = {width: 4 * parameters(settings(width=width)) for width in range(20, 40)}
    published = 17.95 * 2**20 / 20
    assert min(sizes, key=lambda width: abs(sizes[width] - published)) == 28
    assert sizes[28] == pytest.approx(published, rel=0.03)


def by_hand(state, x):
    def convolved(name, x, stride=1):
        weight = state[f"{name}.weight"]
        return functional.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2)

    def normed(name, x):
        parts = [state[f"{name}.{part}"] for part in ("running_mean", "running_var")]
        return functional.batch_norm(x, *parts, state[f"{name}.weight"], state[f"{name}.bias"])

    def block(name, x, stride):
        hidden = normed(f"{name}.norm1", convolved(f"{name}.conv1", x, stride)).relu()
        hidden = normed(f"{name}.norm2", convolved(f"{name}.conv2", hidden))
        if name != "block1":
            x = normed(f"{name}.shortcut.norm", convolved(f"{name}.shortcut.conv", x, stride))
        return (hidden + x).relu()

    x = normed("norm", convolved("conv", x)).relu()
    for name, stride in (("block1", 1), ("block2", 2), ("block3", 2)):
        x = block(name, x, stride)
    pooled = x.unflatten(3, (-1, 4)).unflatten(2, (-1, 4)).mean((3, 5))
    return functional.linear(pooled.flatten(1), state["linear.weight"], state["linear.bias"])


def test_layers_are_those_that_are_said():
    model = initialised(settings(width=4)).eval()
    generator = torch_generator(3, "statistics")
    for name, value in model.state_dict().items():
        if name.endswith(("running_mean", "running_var")):
            value.copy_(torch.rand(value.shape, generator=generator) + 0.5)
    x = images()
    with torch.no_grad():
        torch.testing.assert_close(model(x), by_hand(model.state_dict(), x))
