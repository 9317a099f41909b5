"""FedProx's term by hand; `reference/fedprox.py` has whole rounds."""

import pytest
import torch
from torch import nn

from fedstage.algorithm.local_trainers import local_trainer
from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.local_training import FedAvg, FedProx
from fedstage.settings.models import CnnSmall
from fedstage.settings.optimisation import Client
from fedstage.training.batches import client_batches
from fedstage.training.loop import train

INFO = {"mean": [0.5], "std": [0.25]}
N, CLASSES = 22, 3


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch.set_num_threads(1)  # as stages do; more only cost time on tensors this small


def network(norm="batch"):
    settings = CnnSmall(name="cnn_small", width=2, hidden=5, norm=norm)
    model = build(settings, (1, 8, 8), CLASSES)
    initialise(model, torch_generator(0, "weights"))
    return model


def data():
    generator = torch_generator(0, "data")
    images = torch.randint(0, 256, (N, 1, 8, 8), generator=generator, dtype=torch.uint8)
    return images, torch.randint(0, CLASSES, (N,), generator=generator)


def client(**changes):
    plain = {"learning_rate": 0.1, "batch_size": 8, "epochs": 2}
    return Client.model_validate(plain | changes)


def batches(settings):
    return client_batches(N, settings, torch_generator(0, "batches"))


def parameters(model):
    return {name: value.detach().clone() for name, value in model.named_parameters()}


def trained(mu, settings, loss=nn.functional.cross_entropy, model=None, start=None):
    model = network() if model is None else model
    images, labels = data()
    start = parameters(model) if start is None else start
    term = local_trainer(FedProx(name="fedprox", mu=mu)).gradient_term(start, {}, client=0)
    generator = torch_generator(0, "augmentation")
    train(
        model, images, labels, batches(settings), settings, loss, INFO, generator,
        gradient_term=term,
    )  # fmt: skip
    return model.state_dict()


@pytest.mark.parametrize("change", [{}, {"momentum": 0.9}, {"optimiser": "adam"}], ids=str)
def test_mu_zero_is_fedavg_bit_for_bit(change):
    settings = client(**change)
    model = network()
    images, labels = data()
    assert local_trainer(FedAvg(name="fedavg")).gradient_term({}, {}, client=0) is None
    generator = torch_generator(0, "augmentation")
    loss = nn.functional.cross_entropy
    train(model, images, labels, batches(settings), settings, loss, INFO, generator)
    ours = trained(0.0, settings)
    assert all(torch.equal(ours[name], value) for name, value in model.state_dict().items())


def test_without_a_data_gradient_the_distance_shrinks_by_one_minus_eta_mu_a_step():
    settings, mu = client(epochs=None, steps=7), 2.0
    model = network(norm="none")
    start = {name: value + 0.5 for name, value in parameters(model).items()}
    before = parameters(model)
    trained(mu, settings, loss=lambda logits, labels: 0.0 * logits.sum(), model=model, start=start)
    for name, value in parameters(model).items():
        expected = (1 - 0.1 * mu) ** 7 * (before[name] - start[name])
        assert torch.allclose(value - start[name], expected, rtol=1e-4, atol=1e-6)


def test_the_term_pulls_parameters_only_and_towards_the_start():
    model = network()
    start = {name: torch.zeros_like(value) for name, value in parameters(model).items()}
    term = local_trainer(FedProx(name="fedprox", mu=0.5)).gradient_term(start, {}, client=0)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    buffers = {name: value.clone() for name, value in model.named_buffers()}
    term(list(model.parameters()))
    for parameter in model.parameters():
        assert torch.allclose(parameter.grad, 1 + 0.5 * parameter.detach())
    assert all(torch.equal(value, buffers[name]) for name, value in model.named_buffers())
