"""The models against forward passes written again on their state dicts."""

import pytest
import torch
from torch.nn import functional as F

from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.models import CnnSmall, Perceptron, ResNet, WideResNet

SHAPE = (3, 12, 10)


def random_state(model):
    """Random values everywhere, so that no norm or bias is the identity by chance."""
    generator = torch_generator(3, "state")
    state = {}
    for name, value in model.state_dict().items():
        if name.endswith("num_batches_tracked"):
            state[name] = value
        elif name.endswith("running_var") or (value.ndim == 1 and name.endswith("weight")):
            state[name] = 0.5 + torch.rand(value.shape, generator=generator)
        else:
            scale = 0.1 if value.ndim == 1 else (2 / value[0].numel()) ** 0.5
            state[name] = scale * torch.randn(value.shape, generator=generator)
    return state


def norm(state, name, x, kind):
    weight, bias = state.get(f"{name}.weight"), state.get(f"{name}.bias")
    if kind == "none":
        return x
    if kind == "group":
        n, c, h, w = x.shape
        grouped = x.reshape(n, 8, c // 8 * h * w)
        centred = grouped - grouped.mean(2, keepdim=True)
        scaled = centred / (centred.square().mean(2, keepdim=True) + 1e-5).sqrt()
        return scaled.reshape(x.shape) * weight[:, None, None] + bias[:, None, None]
    mean, variance = state[f"{name}.running_mean"], state[f"{name}.running_var"]
    scale = weight / (variance + 1e-5).sqrt()
    return (x - mean[:, None, None]) * scale[:, None, None] + bias[:, None, None]


def conv(state, name, x, stride=1, padding=1):
    return F.conv2d(
        x, state[f"{name}.weight"], state.get(f"{name}.bias"), stride=stride, padding=padding
    )


def linear(state, name, x):
    return x @ state[f"{name}.weight"].T + state[f"{name}.bias"]


def resnet_by_hand(state, x, blocks, shortcut, kind):
    x = F.relu(norm(state, "norm", conv(state, "conv", x), kind))
    for stage in (1, 2, 3):
        for block in range(blocks):
            at = f"stage{stage}.{block}"
            stride = 2 if stage > 1 and block == 0 else 1
            hidden = F.relu(norm(state, f"{at}.norm1", conv(state, f"{at}.conv1", x, stride), kind))
            branch = norm(state, f"{at}.norm2", conv(state, f"{at}.conv2", hidden), kind)
            if stride == 2 and shortcut == "A":
                kept = x[:, :, ::2, ::2]
                x = torch.cat([kept, torch.zeros_like(kept)], dim=1)
            elif stride == 2:
                projected = conv(state, f"{at}.shortcut.conv", x, stride=2, padding=0)
                x = norm(state, f"{at}.shortcut.norm", projected, kind)
            x = F.relu(branch + x)
    return linear(state, "linear", x.mean((2, 3)))


def wide_resnet_by_hand(state, x, kind):
    x = conv(state, "conv", x)
    for group in (1, 2, 3):
        for block in (0, 1):
            at = f"group{group}.{block}"
            stride = 2 if group > 1 and block == 0 else 1
            active = F.relu(norm(state, f"{at}.norm1", x, kind))
            hidden = conv(state, f"{at}.conv1", active, stride)
            branch = conv(state, f"{at}.conv2", F.relu(norm(state, f"{at}.norm2", hidden, kind)))
            if block == 0:
                x = conv(state, f"{at}.projection", active, stride, padding=0)
            x = branch + x
    x = F.relu(norm(state, "norm", x, kind))
    return linear(state, "linear", x.mean((2, 3)))


def cnn_small_by_hand(state, x, kind):
    for layer in (1, 2):
        x = F.relu(norm(state, f"norm{layer}", conv(state, f"conv{layer}", x), kind))
        x = F.max_pool2d(x, 2)
    return linear(state, "linear2", F.relu(linear(state, "linear1", x.flatten(1))))


def compare(settings, by_hand):
    """In double precision: how a processor orders the sums of twenty layers is not the subject."""
    model = build(settings, SHAPE, 10).eval().double()
    state = {name: value.double() for name, value in random_state(model).items()}
    model.load_state_dict(state)
    images = torch.randn(4, *SHAPE, generator=torch_generator(2, "images")).double()
    with torch.no_grad():
        torch.testing.assert_close(model(images), by_hand(state, images))


@pytest.mark.parametrize("kind", ["batch", "group", "none"])
@pytest.mark.parametrize("shortcut", ["A", "B"])
@pytest.mark.parametrize(("name", "blocks"), [("resnet8", 1), ("resnet20", 3)])
def test_resnet_is_what_the_paper_describes(name, blocks, shortcut, kind):
    compare(
        ResNet(name=name, norm=kind, shortcut=shortcut),
        lambda state, x: resnet_by_hand(state, x, blocks, shortcut, kind),
    )


@pytest.mark.parametrize("kind", ["batch", "group", "none"])
def test_wide_resnet_is_what_the_paper_describes(kind):
    compare(
        WideResNet(name="wrn16_2", norm=kind),
        lambda state, x: wide_resnet_by_hand(state, x, kind),
    )


@pytest.mark.parametrize("kind", ["batch", "group", "none"])
def test_small_network_is_what_its_settings_describe(kind):
    compare(
        CnnSmall(name="cnn_small", norm=kind), lambda state, x: cnn_small_by_hand(state, x, kind)
    )


def test_a_perceptron_has_a_relu_between_its_layers():
    def by_hand(state, x):
        hidden = linear(state, "linear1", x.flatten(1)).clamp(min=0)
        return linear(state, "linear3", linear(state, "linear2", hidden).clamp(min=0))

    compare(Perceptron(name="mlp", hidden=(7, 5)), by_hand)
