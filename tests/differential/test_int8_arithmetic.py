"""INT8 against plain arithmetic: scales, zero points, rounding, and a layer with whole numbers."""

from collections import OrderedDict

import numpy as np
import pytest
import torch
from torch import nn

pytest.importorskip("torchao", reason="torchao, of the extra `int8`, is not installed")
int8 = pytest.importorskip("fedstage.models.int8")

HIGHEST = 127


def drawn(*shape, seed=0, shift=0.0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) + shift


def linear(outputs=4):
    model = nn.Sequential(OrderedDict(linear=nn.Linear(6, outputs)))
    with torch.no_grad():
        model.linear.weight.copy_(drawn(outputs, 6, seed=1) * torch.arange(1, outputs + 1)[:, None])
        model.linear.bias.copy_(drawn(outputs, seed=2))
    return model


def weight_rule(weight):
    """Scale [m] and whole numbers [m, ...] of a weight: -128 to 127, symmetric about 0."""
    rows = weight.reshape(len(weight), -1)
    largest = np.abs(rows).max(1)
    scale = largest / 127.5
    exact = rows / scale[:, None]
    return scale, np.clip(np.rint(exact), -128, 127).reshape(weight.shape), exact


def input_rule(values):
    """Scale and zero point of a range that contains 0."""
    low, high = min(values.min(), 0.0), max(values.max(), 0.0)
    scale = (high - low) / HIGHEST
    return scale, int(np.clip(-np.rint(low / scale), 0, HIGHEST))


def whole(values, scale, zero):
    return np.clip(np.rint(values / scale) + zero, 0, HIGHEST)


def no_ties(exact):
    """Whether no number is so near to the middle of two that float32 might round it otherwise."""
    return np.abs(exact - np.floor(exact) - 0.5).min() > 1e-4


def test_weights_are_rounded_to_multiples_of_their_scale():
    model = linear()
    found = int8.quantise(model, drawn(2, 6), [drawn(30, 6)])
    weight = model.linear.weight.detach().double().numpy()
    scale, expected, exact = weight_rule(weight)
    assert no_ties(exact[np.abs(exact) < 127])
    assert found["linear.weight"].dtype == torch.int8
    np.testing.assert_array_equal(found["linear.weight"].numpy(), expected)
    np.testing.assert_allclose(found["linear.weight.scale"].numpy(), scale, rtol=1e-6)
    assert found["linear.weight.scale"].shape == (4,)


@pytest.mark.parametrize("shift", [-9.0, -0.5, 9.0])
def test_ranges_of_inputs_are_their_least_and_greatest_over_all_batches(shift):
    batches = [drawn(10, 6, seed=seed, shift=shift) for seed in range(3)]
    found = int8.quantise(linear(), drawn(2, 6), batches)
    values = torch.cat(batches).double().numpy()
    scale, zero = input_rule(values)
    assert found["linear.weight.input_scale"].item() == pytest.approx(scale, rel=1e-6)
    assert found["linear.weight.input_zero_point"].item() == zero


def test_a_linear_layer_is_a_product_of_whole_numbers():
    model, seen = linear(), drawn(40, 6, shift=0.3)
    tensors = int8.quantise(model, drawn(2, 6), [seen])
    network = int8.restore(linear(), drawn(2, 6), tensors)
    asked = drawn(25, 6, seed=7) * 2  # in part beyond the range
    scale, zero = input_rule(seen.double().numpy())
    q = whole(asked.double().numpy(), scale, zero)
    assert {0, HIGHEST} <= set(q.flatten())
    steps, p, _ = weight_rule(model.linear.weight.detach().double().numpy())
    products = (q - zero).astype(int) @ p.astype(int).T
    expected = products * scale * steps + model.linear.bias.detach().double().numpy()
    np.testing.assert_allclose(network(asked).detach().numpy(), expected, rtol=1e-5, atol=1e-4)


def test_batch_normalisation_is_folded_into_the_convolution_before_it():
    model = nn.Sequential(
        OrderedDict(conv=nn.Conv2d(2, 3, 3, bias=False), norm=nn.BatchNorm2d(3))
    ).eval()
    with torch.no_grad():
        model.norm.weight.copy_(torch.tensor([0.5, 2.0, -1.0]))
        model.norm.bias.copy_(torch.tensor([1.0, 0.0, 3.0]))
        model.norm.running_mean.copy_(torch.tensor([0.1, -2.0, 0.4]))
        model.norm.running_var.copy_(torch.tensor([4.0, 0.25, 1.0]))
        model.conv.weight.copy_(drawn(3, 2, 3, 3, seed=3))
    example, seen = drawn(2, 2, 5, 5), drawn(8, 2, 5, 5, seed=4)
    tensors = int8.quantise(model, example, [seen])
    factor = np.array([0.5, 2.0, -1.0]) / np.sqrt(np.array([4.0, 0.25, 1.0]) + 1e-5)
    folded = drawn(3, 2, 3, 3, seed=3).double().numpy() * factor[:, None, None, None]
    steps, p, exact = weight_rule(folded)
    assert no_ties(exact[np.abs(exact) < 127])
    np.testing.assert_array_equal(tensors["conv.weight"].numpy(), p)
    bias = np.array([1.0, 0.0, 3.0]) - np.array([0.1, -2.0, 0.4]) * factor
    (name,) = [name for name in tensors if "bias" in name]
    np.testing.assert_allclose(tensors[name].numpy(), bias, rtol=1e-5)
    assert not [name for name in tensors if name.startswith("norm")]
    scale, zero = input_rule(seen.double().numpy())
    q = torch.as_tensor(whole(seen.double().numpy(), scale, zero) - zero)
    products = nn.functional.conv2d(q, torch.as_tensor(p)).numpy()
    expected = products * scale * steps[:, None, None] + bias[:, None, None]
    network = int8.restore(model, example, tensors)
    np.testing.assert_allclose(network(seen).detach().numpy(), expected, rtol=1e-5, atol=1e-4)
