"""The choices of numerics: each gives its own bytes again, and all nearly the same numbers."""

from itertools import product

import pytest
import torch
from torch import nn

from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.models import CnnSmall, ResNet
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import Optimiser
from fedstage.training.images import normalise
from fedstage.training.loop import train
from fedstage.training.passes import (
    BATCH,
    arrange,
    class_accuracies,
    compute_logits,
    forward,
    model_loss,
)

INFO = {"mean": [0.4, 0.5, 0.6], "std": [0.3, 0.2, 0.1]}
CHOICES = [
    Numerics(precision=precision, memory_format=order)
    for precision, order in product(("fp32", "bf16"), ("contiguous", "channels_last"))
]
PLAIN = CHOICES[0]
EACH = pytest.mark.parametrize(
    "numerics", CHOICES, ids=lambda n: f"{n.precision}-{n.memory_format}"
)
#: How far a choice may be from plain fp32: of gradients and logits, as a share of their norm.
FAR = {"fp32": 1e-5, "bf16": 0.15}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch.set_num_threads(1)  # as stages do


def model(numerics, norm="batch"):
    made = build(ResNet(name="resnet8", norm=norm), (3, 8, 8), 4)
    initialise(made, torch_generator(0, "weights"))
    return arrange(made, numerics)


def data(n=40):
    generator = torch_generator(0, "data")
    images = torch.randint(0, 256, (n, 3, 8, 8), generator=generator, dtype=torch.uint8)
    return images, torch.randint(0, 4, (n,), generator=generator)


def trained(numerics, steps=6, **changes):
    chosen = {"learning_rate": 0.05, "momentum": 0.9, "batch_size": 16} | changes
    settings, (images, labels) = Optimiser.model_validate(chosen), data()
    batches = [batch for _ in range(steps) for batch in torch.arange(40).split(16)][:steps]
    made, generator = model(numerics), torch_generator(0, "augmentation")
    loss = nn.functional.cross_entropy
    outcome = train(made, images, labels, batches, settings, loss, INFO, generator, numerics)
    return made, outcome


def bytes_of(made):
    state = made.state_dict().items()
    return {name: value.contiguous().numpy().tobytes() for name, value in state}


def distance(found, expected):
    return float((found.double() - expected.double()).norm() / expected.double().norm())


def moved(made):
    return flat(made) - flat(model(PLAIN))


def flat(made):
    return torch.cat([value.detach().flatten() for value in made.parameters()])


def test_each_choice_gives_its_bytes_again_in_any_order():
    first = [bytes_of(trained(numerics, augmentation="crop_flip")[0]) for numerics in CHOICES]
    for numerics, expected in reversed(list(zip(CHOICES, first, strict=True))):
        assert bytes_of(trained(numerics, augmentation="crop_flip")[0]) == expected
    assert first[0] != first[2]  # bf16 is no fp32


@EACH
def test_one_step_is_that_of_plain_fp32_within_a_tolerance(numerics):
    assert (
        distance(moved(trained(numerics, 1)[0]), moved(trained(PLAIN, 1)[0]))
        < (FAR[numerics.precision])
    )


@EACH
def test_logits_and_the_gradient_of_all_are_those_of_plain_fp32_within_a_tolerance(numerics):
    images, labels = data()
    loss = nn.functional.cross_entropy
    said, gradients = [], []
    for choice in (numerics, PLAIN):
        said.append(compute_logits(model(choice), images, INFO, choice))
        network = model(choice)
        model_loss(loss, choice)(network, normalise(images, INFO), labels).backward()
        gradients.append(torch.cat([part.grad.flatten() for part in network.parameters()]))
    assert said[0].dtype == torch.float32
    assert distance(*said) < FAR[numerics.precision]
    assert distance(*gradients) < FAR[numerics.precision]


@EACH
def test_convolutions_see_what_the_choice_says(numerics):
    made, seen = model(numerics).train(), []
    made.conv.register_forward_hook(lambda module, given, result: seen.append((given[0], result)))
    forward(made, torch.rand(4, 3, 8, 8), numerics)
    ((pixels, result),) = seen
    last = numerics.memory_format == "channels_last"
    assert pixels.is_contiguous(memory_format=torch.channels_last) == last
    assert made.stage2[0].conv1.weight.is_contiguous(memory_format=torch.channels_last) == last
    assert result.dtype == (torch.bfloat16 if numerics.precision == "bf16" else torch.float32)


def test_the_loss_is_in_fp32():
    seen = []

    def loss(logits, targets):
        seen.append((logits.dtype, torch.is_autocast_enabled("cpu")))
        return nn.functional.cross_entropy(logits, targets)

    numerics = Numerics(precision="bf16")
    of = model_loss(loss, numerics)
    value = of(model(numerics).train(), torch.rand(4, 3, 8, 8), torch.tensor([0, 1, 2, 3]))
    assert seen == [(torch.float32, False)]
    assert value.dtype == torch.float32


# --- inference ------------------------------------------------------------------------------------


GREY = {"mean": [0.4], "std": [0.3]}


def small_model():
    network = build(CnnSmall(name="cnn_small", width=2, hidden=4, norm="batch"), (1, 8, 8), 3)
    initialise(network, torch_generator(0, "weights"))
    for name, buffer in network.named_buffers():
        if name.endswith("running_mean"):
            buffer.fill_(0.25)
        if name.endswith("running_var"):
            buffer.fill_(2.0)
    return network


def images(n):
    generator = torch_generator(0, "images")
    return torch.randint(0, 256, (n, 1, 8, 8), generator=generator, dtype=torch.uint8)


def test_logits_are_those_of_each_image_alone():
    network, pictures = small_model(), images(7)
    together = compute_logits(network, pictures, GREY)
    network.eval()
    pixels = (pictures.double() / 255 - 0.4) / 0.3
    with torch.no_grad():
        alone = torch.cat([network.double()(pixels[i : i + 1]) for i in range(7)])
    assert (together.shape, together.dtype, together.device.type) == ((7, 3), torch.float32, "cpu")
    assert torch.allclose(together.double(), alone, atol=1e-5)


def test_more_images_than_a_batch_keep_their_order():
    class Mean(nn.Module):
        def forward(self, pixels):
            assert len(pixels) <= BATCH["cpu"]
            return pixels.mean((1, 2, 3))[:, None]

    n = 2 * BATCH["cpu"] + 3
    pictures = torch.zeros(n, 1, 2, 2, dtype=torch.uint8)
    pictures[:] = (torch.arange(n) % 251).to(torch.uint8)[:, None, None, None]
    logits = compute_logits(Mean(), pictures, {"mean": [0.0], "std": [1 / 255]})
    assert logits.shape == (n, 1)
    assert torch.allclose(logits[:, 0], (torch.arange(n) % 251).float(), atol=1e-3)


def test_right_answers_by_class_by_hand():
    logits = torch.tensor([[2.0, 1, 0, 0], [0, 2, 1, 0], [5, 2, 3, 0], [1, 2, 3, 0], [0, 0, 1, 0]])
    right, samples = class_accuracies(logits, torch.tensor([0, 1, 2, 2, 0]))
    assert right.tolist() == [1, 1, 1, 0]
    assert samples.tolist() == [2, 1, 2, 0]
    assert {right.dtype, samples.dtype} == {torch.float64}
