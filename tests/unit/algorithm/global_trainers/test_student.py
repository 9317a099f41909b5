"""What a student minimises beside the loss to its teacher, and which weights it ends with."""

import copy

import pytest
import torch
from torch.nn.functional import cross_entropy

from fedstage.algorithm.global_trainers.buffer import cached_buffer, live_buffer
from fedstage.algorithm.global_trainers.distillation import distillation_loss
from fedstage.algorithm.global_trainers.objective import Seen, sum_of, to_labels, to_targets
from fedstage.algorithm.global_trainers.student import Taught, teach
from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.models import CnnSmall
from fedstage.settings.server import Buffer, Server
from fedstage.training.batch_norm import re_estimate
from fedstage.training.batches import public_batches
from fedstage.training.images import augment, draw, normalise
from fedstage.training.passes import PLAIN

INFO = {"mean": [0.4], "std": [0.3], "classes": 4, "shape": [1, 8, 8]}
CLASSES, PUBLIC, BATCH = 4, 35, 10
EPOCH = PUBLIC // BATCH


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch.set_num_threads(1)


def images(n=PUBLIC):
    generator = torch_generator("images")
    return torch.randint(0, 256, (n, 1, 8, 8), generator=generator, dtype=torch.uint8)


def cnn(key=0):
    model = build(CnnSmall(name="cnn_small", width=2, hidden=6, norm="batch"), (1, 8, 8), CLASSES)
    initialise(model, torch_generator(key, "weights"))
    return model


LABELS = torch.arange(PUBLIC) % CLASSES
LESSON = Taught(
    images(), 4 * torch.randn(PUBLIC, CLASSES, generator=torch_generator("teacher")), LABELS
)


def server(**changes):
    settings = {"learning_rate": 0.2, "batch_size": BATCH, "momentum": 0.9}
    length = {} if "steps" in changes else {"epochs": 3}
    return Server.model_validate(settings | length | changes)


def taught(lesson=LESSON, **changes):
    """Return the weights that a student ends with."""
    chosen = server(**changes)
    weights, _ = teach(
        cnn(), lesson, distillation_loss(chosen), chosen, PLAIN, INFO, ("a key",), "a student"
    )
    return weights


def assert_same(one, other):
    assert all(torch.equal(value, other[name]) for name, value in one.items())


def assert_close(one, other, tolerance=1e-5):
    for name, value in one.items():
        torch.testing.assert_close(value, other[name], rtol=0, atol=tolerance)


# --- lengths --------------------------------------------------------------------------------------


def test_epochs_are_the_full_batches_of_as_many_permutations():
    assert_same(taught(epochs=3), taught(steps=3 * EPOCH))
    # With fewer samples than a batch each epoch is one batch of all.
    assert_same(taught(epochs=3, batch_size=99), taught(steps=3, batch_size=99))


# --- the sum of terms -----------------------------------------------------------------------------


def test_buffered_distillation_is_the_sum_of_its_terms():
    """L_core + KD + KL to the buffer, in double precision; only the student has a gradient."""
    model, before = torch.nn.Linear(5, CLASSES).double(), torch.nn.Linear(5, CLASSES).double()
    generator = torch_generator("double")
    for network in (model, before):
        for weight in network.parameters():
            weight.data.normal_(generator=generator)
    pixels = torch.randn(6, 5, dtype=torch.float64, generator=generator)
    index = torch.tensor([3, 1, 4, 2, 0, 5])
    teacher = torch.randn(6, CLASSES, dtype=torch.float64, generator=generator)
    chosen, buffer = server(temperature=2.0), Buffer(weight=0.7)
    term, _ = live_buffer(before, buffer, chosen)
    terms = [to_labels(LABELS, 1.3), to_targets(teacher, distillation_loss(chosen)), term]
    loss = sum_of(terms, PLAIN)

    p, q = model(pixels), before(pixels)
    plain = 1.3 * cross_entropy(p, LABELS[index])
    for other, weight in ((teacher[index], 1.0), (q, 0.7)):
        wanted, own = (other / 2).softmax(1), (p / 2).log_softmax(1)
        wanted = wanted.detach()
        plain = plain + weight * 4 * (wanted * (wanted.log() - own)).sum(1).mean()
    found, weights = loss(model, pixels, index), list(model.parameters())
    torch.testing.assert_close(found, plain)
    pairs = zip(*(torch.autograd.grad(value, weights) for value in (found, plain)), strict=True)
    for gradient, expected in pairs:
        torch.testing.assert_close(gradient, expected)
    found = loss(model, pixels, index)
    found.backward()
    assert all(weight.grad is None for weight in before.parameters())


def test_the_temperature_divides_the_logits_of_both():
    student, teacher = torch.tensor([[1.0, -2.0, 0.5]]), torch.tensor([[3.0, 0.0, -1.0]])
    wanted = (teacher / 4).softmax(1)
    expected = 16 * (wanted * (wanted.log() - (student / 4).log_softmax(1))).sum()
    found = distillation_loss(server())(student, teacher)
    assert float(found) == pytest.approx(float(expected), rel=1e-5)


# --- the buffer -----------------------------------------------------------------------------------


def slow_buffered(renewals):
    """Train with plain steps; F_0 is copied before the steps (from 0) in `renewals`."""
    model, chosen = cnn(), server(momentum=0.0)
    batches = public_batches(PUBLIC, BATCH, 3 * EPOCH, torch_generator("a key", "batches"))
    pixels, before = normalise(images(), INFO), None
    for step, batch in enumerate(batches):
        if step in renewals:
            before = copy.deepcopy(model).eval()
        model.train()
        said, loss = model(pixels[batch]), distillation_loss(chosen)
        with torch.no_grad():
            remembered = before(pixels[batch])
        total = cross_entropy(said, LABELS[batch]) + loss(said, LESSON.targets[batch])
        total = total + 0.7 * loss(said, remembered)
        gradients = torch.autograd.grad(total, list(model.parameters()))
        with torch.no_grad():
            for weight, gradient in zip(model.parameters(), gradients, strict=True):
                weight -= 0.2 * gradient
    return model.state_dict()


@pytest.mark.parametrize(
    ("refresh", "renewals"), [("round", {0}), ("epoch", {0, EPOCH, 2 * EPOCH})]
)
def test_the_buffer_is_copied_once_or_as_each_epoch_starts(refresh, renewals):
    buffer = {"weight": 0.7, "refresh": refresh}
    found = taught(labels=1.0, momentum=0.0, buffer=buffer)
    assert_close(slow_buffered(renewals), found, 2e-5)


def test_a_buffer_says_the_same_whether_it_is_remembered_or_asked():
    model, chosen = cnn(), server()
    cached, refresh_cached = cached_buffer(model, images(), Buffer(), chosen, INFO)
    live, refresh_live = live_buffer(model, Buffer(), chosen)
    index = torch.tensor([4, 30, 2])
    pixels = normalise(images()[index], INFO)

    def values():
        seen = Seen(index, pixels, torch.ones(3, CLASSES).tril())
        return float(cached(seen)), float(live(seen))

    first = values()
    assert first[0] == pytest.approx(first[1], rel=1e-6)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1)
    assert values() == first
    refresh_cached()
    refresh_live()
    second = values()
    assert second[0] == pytest.approx(second[1], rel=1e-6)
    assert abs(second[0] - first[0]) > 1e-3


# --- the moving average ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("every", "length", "counted"),
    [
        ("step", {"epochs": 2}, range(1, 2 * EPOCH + 1)),
        ("epoch", {"epochs": 2}, [EPOCH, 2 * EPOCH]),
        ("epoch", {"steps": EPOCH + 1}, [EPOCH, EPOCH + 1]),
        ("round", {"epochs": 2}, [2 * EPOCH]),
    ],
)
def test_a_moving_average_is_that_by_hand(every, length, counted):
    steps = length.get("steps", 2 * EPOCH)
    passed = [cnn().state_dict(), *(taught(steps=step) for step in range(1, steps + 1))]
    found = taught(**length, moving_average={"decay": 0.7, "every": every})
    for name, start in cnn().named_parameters():
        average = start.detach().double()
        for step in counted:
            average = 0.7 * average + 0.3 * passed[step][name].double()
        torch.testing.assert_close(found[name].double(), average, rtol=0, atol=1e-6)


def test_an_averaged_students_statistics_are_of_images_as_the_training_has_them():
    found = taught(augmentation="crop", moving_average={"decay": 0.0})
    by_hand, original = cnn(), cnn()
    by_hand.load_state_dict(found)
    drawn = draw("crop", PUBLIC, torch_generator("a key", "statistics"))
    re_estimate(by_hand, augment(images(), drawn), INFO)
    assert_same(by_hand.state_dict(), found)
    # With decay 0 only statistics differ from plain training, which go along with the steps.
    plain = taught(augmentation="crop", epochs=30, learning_rate=1e-9)
    of_start = taught(
        augmentation="crop", epochs=30, learning_rate=1e-9, moving_average={"decay": 0.0}
    )
    near = (of_start["norm1.running_mean"] - plain["norm1.running_mean"]).abs().max()
    original.load_state_dict(of_start)
    re_estimate(original, images(), INFO)
    far = (original.norm1.running_mean - plain["norm1.running_mean"]).abs().max()
    assert 3 * near < far
