import pytest
import torch
from torch.nn import functional as F

from fedstage.models.heads import body_of, represent
from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.models import CnnSmall, Head, ResNet

SHAPE, CLASSES = (3, 8, 8), 5
HEADS = [Head(), Head(hidden=6, width=4, relu=False)]
MODELS = [CnnSmall(name="cnn_small", width=4), ResNet(name="resnet8", shortcut="B")]


def headed(settings, head):
    model = build(settings.model_copy(update={"head": head}), SHAPE, CLASSES)
    initialise(model, torch_generator(0, "weights"))
    return model.eval()


def pixels():
    return torch.randn(7, *SHAPE, generator=torch_generator(0, "pixels"))


@pytest.mark.parametrize("head", HEADS, ids=["relu", "linear"])
@pytest.mark.parametrize("settings", MODELS, ids=lambda one: one.name)
def test_a_head_is_two_layers_behind_the_body(settings, head):
    model = headed(settings, head)
    state = {name: value for name, value in model.state_dict().items() if name.startswith("head.")}
    assert list(state) == [
        "head.representation.linear.weight", "head.representation.linear.bias",
        "head.classifier.weight", "head.classifier.bias",
    ]  # fmt: skip
    body = body_of(model)(pixels())
    assert body.shape == (7, head.hidden)
    first, last = list(state.values())[:2], list(state.values())[2:]
    expected = F.linear(body.clamp(min=0), *first)
    expected = expected.clamp(min=0) if head.relu else expected
    seen, logits = represent(model, pixels())
    assert torch.equal(seen, expected)
    assert torch.equal(logits, F.linear(expected, *last))
    assert torch.equal(model(pixels()), logits)


@pytest.mark.parametrize("head", HEADS, ids=["relu", "linear"])
def test_heads_of_different_bodies_are_of_one_shape(head):
    shapes = [
        {n: v.shape for n, v in headed(one, head).state_dict().items() if n.startswith("head.")}
        for one in MODELS
    ]
    assert shapes[0] == shapes[1]
