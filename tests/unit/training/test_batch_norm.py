import pytest
import torch
from torch import nn

from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.models import CnnSmall
from fedstage.training.batch_norm import re_estimate

INFO = {"mean": [0.4], "std": [0.25]}


def network(norm="batch"):
    model = build(CnnSmall(name="cnn_small", width=2, hidden=4, norm=norm), (1, 8, 8), 3)
    initialise(model, torch_generator(0, "weights"))
    for name, buffer in model.named_buffers():
        if "running" in name:
            buffer.fill_(7.0)
    return model


def images(number):
    generator = torch_generator(1, "images")
    shape = (number, 1, 8, 8)
    return torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)


def slow_statistics(model, pictures, batches):
    """Mean over batches of mean and variance of what comes into each norm, in float64."""
    plain = build(CnnSmall(name="cnn_small", width=2, hidden=4, norm="batch"), (1, 8, 8), 3)
    plain.load_state_dict(model.state_dict())
    plain.double().train()
    seen = {}

    def watch(name):
        return lambda layer, inputs: seen.setdefault(name, []).append(inputs[0].detach())

    for name, layer in plain.named_modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.register_forward_pre_hook(watch(name))
    for batch in pictures.tensor_split(batches):
        plain((batch.double() / 255 - 0.4) / 0.25)
    expected = {}
    for name, inputs in seen.items():
        flat = [value.transpose(0, 1).flatten(1) for value in inputs]
        expected[f"{name}.running_mean"] = sum(v.mean(1) for v in flat) / batches
        expected[f"{name}.running_var"] = (
            sum(((v - v.mean(1, keepdim=True)) ** 2).sum(1) / (v.shape[1] - 1) for v in flat)
            / batches
        )
    return expected


@pytest.mark.parametrize(("number", "batches"), [(30, 1), (500, 1), (501, 2), (1300, 3)])
def test_statistics_are_those_of_the_images_by_hand(number, batches):
    model, pictures = network(), images(number)
    expected = slow_statistics(model, pictures, batches)
    before = {name: value.clone() for name, value in model.named_parameters()}
    re_estimate(model, pictures, INFO)
    found = dict(model.named_buffers())
    assert len(expected) == 4
    assert int(found["norm1.num_batches_tracked"]) == batches
    for name, value in expected.items():
        assert torch.allclose(found[name].double(), value, rtol=1e-4, atol=1e-5), name
    assert all(torch.equal(value, before[name]) for name, value in model.named_parameters())


def test_a_model_without_batch_norm_is_left_as_it_is():
    model = network("group")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    re_estimate(model, images(20), INFO)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
