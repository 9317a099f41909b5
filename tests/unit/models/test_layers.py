import pytest
import torch

from fedstage.models.initialisation import initialise
from fedstage.models.layers import groups, normalise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.models import ResNet

SHAPE = (1, 8, 8)


def resnet8(norm):
    model = build(ResNet(name="resnet8", norm=norm), SHAPE, 10)
    initialise(model, torch_generator(0, "norms"))
    return model


def images(number, key=0):
    return torch.randn(number, *SHAPE, generator=torch_generator(key, "images"))


def statistics(model):
    return {name: value.clone() for name, value in model.named_buffers()}


@torch.no_grad()
def depends_on_the_batch(model):
    first, others = images(1), images(7, key=1)
    alone = model(torch.cat([first, images(7, key=2)]))[0]
    return not torch.allclose(alone, model(torch.cat([first, others]))[0], atol=1e-5)


@pytest.mark.parametrize(
    ("channels", "expected"), [(64, 8), (16, 8), (8, 8), (12, 4), (20, 4), (6, 2), (7, 1), (1, 1)]
)
def test_groups_divide_the_channels(channels, expected):
    assert groups(channels) == expected
    normalise("group", channels)(torch.ones(2, channels, 3, 3))


def test_batch_norm_uses_and_tracks_the_batch_when_training():
    model = resnet8("batch").train()
    before = statistics(model)
    assert depends_on_the_batch(model)  # two batches
    after = statistics(model)
    assert before.keys() == after.keys()
    assert not any(torch.equal(before[name], after[name]) for name in before)
    assert after["norm.num_batches_tracked"].item() == 2
