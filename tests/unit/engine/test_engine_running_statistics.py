import numpy as np
import pytest
import torch
from torch import nn

from fedstage.engine import running_statistics
from fedstage.engine.running_statistics import re_estimate
from fedstage.randomness import torch_generator

INFO = {"mean": [0.4], "std": [0.3]}


def images(n):
    generator = torch_generator(0, "images")
    return torch.randint(0, 256, (n, 1, 3, 3), generator=generator, dtype=torch.uint8)


def model():
    network = nn.Sequential(nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten())
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=torch_generator("weights")))
    network[1].running_mean.fill_(7.0)
    network[1].num_batches_tracked.fill_(99)
    return network


@pytest.mark.parametrize(("n", "sizes"), [(5, [5]), (8, [4, 4]), (11, [4, 4, 3])])
def test_each_image_counts_the_same(monkeypatch, n, sizes):
    monkeypatch.setattr(running_statistics, "BATCH", 5)
    network, pictures = model(), images(n)
    pixels = (pictures.double() / 255 - 0.4) / 0.3
    with torch.no_grad():
        features = network[0].double()(pixels).numpy()
    network.float()
    means, variances, start = 0.0, 0.0, 0
    for size in sizes:
        part = features[start : start + size].transpose(1, 0, 2, 3).reshape(2, -1)
        means, variances = means + size * part.mean(1), variances + size * part.var(1, ddof=1)
        start += size
    re_estimate(network, pictures, INFO)
    assert np.allclose(network[1].running_mean.numpy(), means / n, atol=1e-5)
    assert np.allclose(network[1].running_var.numpy(), variances / n, rtol=1e-4)
    assert network[1].momentum == 0.1


def test_parameters_stay_as_they_are():
    network = model()
    before = [parameter.detach().clone() for parameter in network.parameters()]
    re_estimate(network, images(6), INFO)
    assert all(map(torch.equal, network.parameters(), before))


def test_a_model_without_batch_norms_is_not_even_called():
    def refuse(*inputs):
        raise AssertionError("called")

    network = nn.Sequential(nn.Flatten(), nn.Linear(9, 2))
    network.register_forward_pre_hook(refuse)
    re_estimate(network, images(3), INFO)
