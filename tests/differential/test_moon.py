"""MOON's contrast and state by hand; `reference/moon.py` has whole rounds."""

import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from fedstage.algorithm.exchange.updates import Update
from fedstage.algorithm.local_trainers import Task, local_trainer, moon
from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.local_training import Moon
from fedstage.settings.models import CnnSmall, Head
from fedstage.settings.optimisation import Client
from fedstage.training.batches import client_batches
from fedstage.training.loop import train
from fedstage.training.passes import PLAIN

INFO = {"mean": [0.5], "std": [0.25]}
N, CLASSES = 22, 3


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch.set_num_threads(1)  # as stages do; more only cost time on tensors this small


def network(seed=0):
    head = Head(hidden=6, width=5, relu=False)
    settings = CnnSmall(name="cnn_small", width=2, hidden=5, norm="batch", head=head)
    model = build(settings, (1, 8, 8), CLASSES)
    initialise(model, torch_generator(seed, "weights"))
    return model


def data():
    generator = torch_generator(0, "data")
    images = torch.randint(0, 256, (N, 1, 8, 8), generator=generator, dtype=torch.uint8)
    return images, torch.randint(0, CLASSES, (N,), generator=generator)


def settings_of(mu=2.0, temperature=0.5):
    return Moon(name="moon", mu=mu, temperature=temperature)


def state_after(model, client=3):
    """The round state in which a client has ended in a model."""
    update = Update(None, model.state_dict(), {}, {"client": client})
    return local_trainer(settings_of()).next_state({}, [update], clients=9)


def by_hand(seen, start, last, temperature):
    """The mean L_con, written as it is printed."""
    total = 0.0
    for z, glob, prev in zip(seen.tolist(), start.tolist(), last.tolist(), strict=True):

        def cosine(one, other):
            dot = sum(a * b for a, b in zip(one, other, strict=True))
            return dot / math.hypot(*one) / math.hypot(*other)

        near = math.exp(cosine(z, glob) / temperature)
        total -= math.log(near / (near + math.exp(cosine(z, prev) / temperature)))
    return total / len(seen)


def three(seed=0):
    generator = torch_generator(seed, "z")
    return [torch.randn(6, 4, generator=generator, dtype=torch.float64) for _ in range(3)]


@pytest.mark.parametrize("temperature", [0.1, 0.5, 3.0])
def test_the_contrast_is_the_printed_one(temperature):
    found = moon.contrastive_loss(*three(), temperature)
    assert float(found) == pytest.approx(by_hand(*three(), temperature), rel=1e-12)


def test_the_gradient_is_that_of_finite_differences():
    seen, start, last = three()
    seen.requires_grad_()
    moon.contrastive_loss(seen, start, last, 0.5).backward()
    for place in ((0, 0), (3, 2), (5, 1)):
        step = torch.zeros_like(seen)
        step[place] = 1e-6
        ends = [by_hand((seen + s * step).detach(), start, last, 0.5) for s in (1, -1)]
        assert float(seen.grad[place]) == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5)


@pytest.mark.parametrize("temperature", [0.1, 0.5, 3.0])
def test_equal_models_leave_log_2_and_scale_does_not_matter(temperature):
    seen, start, last = three()
    equal = moon.contrastive_loss(seen, start, start, temperature)
    assert float(equal) == pytest.approx(math.log(2))
    scaled = moon.contrastive_loss(7 * seen, start, 0.1 * last, temperature)
    expected = moon.contrastive_loss(seen, start, last, temperature)
    assert float(scaled) == pytest.approx(float(expected))


def trained(model, mu, state, client=3):
    images, labels = data()
    settings = Client.model_validate({"learning_rate": 0.1, "batch_size": 8, "epochs": 2})
    batches = client_batches(N, settings, torch_generator(0, "batches"))
    task = Task(model, cross_entropy, PLAIN, state, client, labels, CLASSES, torch.Generator())
    objective = local_trainer(settings_of(mu)).objective(task)
    train(
        model, images, labels, batches, settings, cross_entropy, INFO,
        torch_generator(0, "augmentation"), objective=objective,
    )  # fmt: skip
    return model.state_dict()


def test_without_mu_and_in_a_first_participation_it_is_fedavg_bit_for_bit():
    last = network(seed=5)
    expected = trained(network(), 2.0, {})
    for mu, state in ((0.0, state_after(last)), (2.0, state_after(last, client=4))):
        found = trained(network(), mu, state)
        assert all(torch.equal(value, expected[name]) for name, value in found.items())


def test_the_state_has_each_clients_last_model():
    one, other = network(1), network(2)
    state = state_after(one) | {"client/8/head.classifier.bias": torch.ones(CLASSES)}
    update = Update(None, other.state_dict(), {}, {"client": 3})
    after = local_trainer(settings_of()).next_state(state, [update], clients=9)
    names = other.state_dict()
    assert all(torch.equal(after[f"client/3/{name}"], names[name]) for name in names)
    assert torch.equal(after["client/8/head.classifier.bias"], torch.ones(CLASSES))
    assert len(after) == len(names) + 1
