"""Residual networks in two parts: a client's, and the server's behind its body."""

import pytest
import torch
from torch import nn

from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.protocol.groups import features_of
from fedstage.randomness import torch_generator
from fedstage.settings.models import ResNet, ResNetLower, ResNetUpper

NORMS = ("batch", "group", "none")


def lower(**changes):
    return ResNetLower(name="resnet_lower", **changes)


def upper(**changes):
    return ResNetUpper(name="resnet_upper", **changes)


def built(settings, shape=(3, 9, 12), classes=7):
    model = build(settings, shape, classes)
    initialise(model, torch_generator(0, "weights"))
    return model.eval()


def layers(model):
    """Count layers as papers do: convolutions on the way, and the linear layer."""
    kinds = (nn.Conv2d, nn.Linear)
    return sum(isinstance(one, kinds) for one in model.modules())


def test_parts_of_the_paper_have_8_and_55_layers():
    assert layers(built(lower())) == 8
    assert layers(built(upper())) == 55


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("blocks", "width"), [(0, 4), (1, 4), (3, 8)])
def test_the_body_gives_feature_maps_that_the_server_goes_on_from(blocks, width, norm):
    settings = lower(blocks=blocks, width=width, norm=norm)
    model, server = built(settings), built(upper(blocks=1, width=width, norm=norm))
    images = torch.randn(2, 3, 9, 12)
    maps = model.body(images)
    assert tuple(maps.shape[1:]) == features_of(settings, (3, 9, 12)) == (width, 9, 12)
    assert torch.equal(model.head(maps), model(images))
    assert model(images).shape == server(maps).shape == (2, 7)
    assert torch.equal(model.head(maps), model.head.linear(maps.mean((2, 3))))


def test_parts_put_together_are_a_residual_network():
    """A body without blocks and an upper part of three stages of one are the ResNet-8."""
    whole = built(ResNet(name="resnet8", shortcut="B"))
    model, server = built(lower(blocks=0)), built(upper(blocks=1, shortcut="B"))
    state = whole.state_dict()
    own = {
        f"body.{name}": value for name, value in state.items() if name.startswith(("conv", "norm"))
    }
    assert not model.load_state_dict(own, strict=False).unexpected_keys
    rest = {name: value for name, value in state.items() if name.startswith(("stage", "linear"))}
    server.load_state_dict(rest)
    images = torch.randn(2, 3, 9, 12)
    torch.testing.assert_close(server(model.body(images)), whole(images))
