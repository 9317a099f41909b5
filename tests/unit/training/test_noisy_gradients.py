"""Gradients of single samples: clipped, summed, with noise, and divided by a constant."""

from typing import get_args

import pytest
import torch
from pydantic import TypeAdapter
from torch import nn

from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.base import alternatives
from fedstage.settings.models import LogisticRegression, Model
from fedstage.settings.optimisation import Client
from fedstage.settings.validation import validate
from fedstage.training import noisy_gradients
from fedstage.training.batches import NoisyBatches, poisson_batches
from fedstage.training.loop import train
from fedstage.training.noisy_gradients import noisy_backward
from fedstage.training.passes import PLAIN, model_loss

SAMPLES, SHAPE, CLASSES = 6, (1, 2, 2), 3
LOSS = model_loss(nn.functional.cross_entropy, PLAIN)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch.set_num_threads(1)


def model_of(settings=None, shape=SHAPE, classes=CLASSES):
    model = build(settings or LogisticRegression(name="logistic_regression"), shape, classes)
    initialise(model, torch_generator(0, "weights"))
    return model.train()


def drawn(count=SAMPLES, shape=SHAPE):
    generator = torch_generator(1, "data")
    return (
        5 * torch.randn(count, *shape, generator=generator),
        torch.arange(count) % CLASSES,
    )


def noisy(clip=None, noise=0.0, expected=4.0, seed=0):
    return NoisyBatches(clip, noise, expected, torch.Generator().manual_seed(seed))


def gradients(how, model, pixels, targets):
    """Return the loss and the gradients, by name, as one batch of all samples."""
    for parameter in model.parameters():
        parameter.grad = None
    backward = noisy_backward(how, model, LOSS, lambda index: (pixels[index[0]], targets[index[0]]))
    loss = backward(torch.arange(len(pixels))[None])
    return loss, {name: value.grad.clone() for name, value in model.named_parameters()}


def test_dropout_is_of_each_sample():
    model = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(4, CLASSES))
    torch.manual_seed(0)
    pixels = torch.ones(SAMPLES, *SHAPE)
    of_same = gradients(noisy(), model, pixels, torch.zeros(SAMPLES, dtype=torch.long))[1]
    weights = of_same["2.weight"][0]  # one sample's mask would give multiples of one number
    assert len(weights.round(decimals=4).unique()) > 2


def single(model, pixels, target):
    """Return the gradient of one sample as one vector."""
    loss = nn.functional.cross_entropy(model(pixels[None]), target[None])
    return flat(torch.autograd.grad(loss, list(model.parameters())))


def flat(values):
    return torch.cat([value.flatten().double() for value in values])


def test_without_noise_and_clipping_it_is_the_sum_of_losses_divided_by_the_expected_number():
    model, (pixels, targets) = model_of(), drawn()
    loss, found = gradients(noisy(expected=4.0), model, pixels, targets)
    total = nn.functional.cross_entropy(model(pixels), targets, reduction="sum") / 4
    assert loss.item() == pytest.approx(total.item(), rel=1e-6)
    expected = torch.autograd.grad(total, list(model.parameters()))
    torch.testing.assert_close(list(found.values()), list(expected), rtol=1e-5, atol=1e-6)


def test_each_sample_is_clipped_over_all_parameters_together():
    model, (pixels, targets) = model_of(), drawn()
    own = [single(model, *sample) for sample in zip(pixels, targets, strict=True)]
    clip = sorted(float(one.norm()) for one in own)[2]  # longer than it: half of them
    _, found = gradients(noisy(clip, expected=2.0), model, pixels, targets)
    wanted = sum(one * min(1.0, clip / float(one.norm())) for one in own) / 2
    torch.testing.assert_close(flat(found.values()), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("gone", range(SAMPLES))
def test_without_a_sample_the_sum_moves_by_the_clip_at_most(gone):
    model, (pixels, targets), clip = model_of(), drawn(), 0.3
    kept = [sample for sample in range(SAMPLES) if sample != gone]
    of_all, of_rest = (
        flat(gradients(noisy(clip, expected=1.0), model, pixels[own], targets[own])[1].values())
        for own in (range(SAMPLES), kept)
    )
    assert 0 < float((of_all - of_rest).norm()) <= clip * (1 + 1e-5)


def test_noise_has_the_stated_deviation_and_is_all_that_an_empty_batch_has():
    model = model_of(shape=(1, 80, 80), classes=5)

    def never(samples):
        raise AssertionError("an empty batch has no pixels")

    loss = noisy_backward(noisy(2.0, 1.5, expected=10.0), model, LOSS, never)(torch.zeros(1, 0))
    assert loss.item() == 0.0
    values = [parameter.grad for parameter in model.parameters()]
    assert flat(values).std().item() == pytest.approx(2.0 * 1.5 / 10, rel=0.02)
    assert abs(flat(values).mean().item()) < 0.01


def test_parts_that_fit_the_memory_add_up(monkeypatch):
    model, data = model_of(), drawn()
    _, whole = gradients(noisy(0.5), model, *data)
    monkeypatch.setattr(noisy_gradients, "PART", 2 * 15)  # two samples at a time
    _, parts = gradients(noisy(0.5), model, *data)
    torch.testing.assert_close(whole, parts, rtol=1e-5, atol=1e-7)


def test_a_training_on_random_batches_is_plain_steps_on_them():
    pixels = torch.randint(0, 256, (12, *SHAPE), generator=torch_generator(2), dtype=torch.uint8)
    targets = torch.arange(12) % CLASSES
    settings = validate(Client, {"steps": 9, "batch_size": 2, "learning_rate": 0.2}, "client")
    batches = poisson_batches(12, 2, 9, torch_generator(3))
    assert any(not len(batch) for batch in batches)
    info = {"mean": [0.5], "std": [0.25]}
    model, plain = model_of(), model_of()
    outcome = train(
        model, pixels, targets, batches, settings, nn.functional.cross_entropy, info,
        torch_generator(4), noisy=noisy(expected=2.0),
    )  # fmt: skip
    assert outcome.steps == 9
    assert outcome.diverged_at is None
    normal = (pixels / 255 - 0.5) / 0.25
    for batch in batches:
        loss = nn.functional.cross_entropy(plain(normal[batch]), targets[batch], reduction="sum")
        slopes = torch.autograd.grad(loss / 2, list(plain.parameters()))
        with torch.no_grad():
            for parameter, slope in zip(plain.parameters(), slopes, strict=True):
                parameter -= 0.2 * slope
    torch.testing.assert_close(model.state_dict(), plain.state_dict(), rtol=1e-5, atol=1e-6)


SMALL = {
    "resnet8": {"norm": "group"},
    "resnet8_wide": {"norm": "group"},
    "resnet_lower": {"norm": "group"},
    "wrn16_2": {"norm": "group"},
    "resnet18": {"norm": "group"},
    "deep_mil": {"width": 4},
    "embedding_bag": {"vocabulary": 50},
}
SHAPES = {"deep_mil": (1 + 4,), "embedding_bag": (7,)}
NAMES = [
    name
    for kind in alternatives(Model)
    if kind.by_sample and kind.__module__ == "fedstage.settings.models"
    for name in get_args(kind.model_fields["name"].annotation)
    if name not in ("vgg19", "resnet_upper", "resnet20", "resnet32", "resnet56")  # larger, or parts
]


@pytest.mark.parametrize("name", NAMES)
def test_architectures_have_gradients_of_single_samples(name):
    shape = SHAPES.get(name, (3, 32, 32))
    settings = TypeAdapter(Model).validate_python({name: SMALL.get(name, {})})
    own_shape = (4,) if name == "deep_mil" else shape
    model = model_of(settings, own_shape, 2)
    generator = torch_generator(5)
    pixels = torch.randn(2, *shape, generator=generator)
    if name == "deep_mil":
        pixels = torch.ones(2, 3, 5) * pixels[:, None]
        pixels[..., 0] = torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    if name == "embedding_bag":
        pixels = torch.randint(1, 50, (2, *shape), generator=generator)
    targets = torch.tensor([0, 1])
    _, found = gradients(noisy(expected=2.0), model, pixels, targets)
    expected = torch.autograd.grad(LOSS(model, pixels, targets), list(model.parameters()))
    torch.testing.assert_close(list(found.values()), list(expected), rtol=1e-3, atol=1e-4)
